"""The settings of `casstat sweep`: checked before anything starts, and made into the settings of each run."""

import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import prod
from pathlib import Path

import click

from cli.errors import CasstatError, errors_as
from cli.experiments.experiment_runs import common_settings
from cli.parameters import parameter_values
from cli.parameters.parameter_values import PlaceholderError, filled, placeholders
from cli.record.record_program import RecordSettings, redactor_of, require_valid
from collector.printable import one_line
from collector.redaction.redactor import Redactor
from collector.runs.parameter_sweep import SweepSettings, SweptParameter, knowing_parameters
from collector.runs.run import accepted_name
from exporters.results.sweep.sweep_output import COLUMNS, ITEM_COLUMNS
from exporters.results.sweep.sweep_rows import number_of

MAX_UNCONFIRMED = 1000
"""A sweep with more runs must be confirmed."""
MAX_RUNS = 100_000
REPEAT_TAG = "repeat"


@dataclass(frozen=True)
class SweepOptions:
    """The options of `casstat sweep`; `record` has those that all runs have in common."""

    record: RecordSettings
    parameters: tuple[SweptParameter, ...]
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    pause_s: float = 0.0
    repeats: int = 1
    order: str = "random"
    items_per_op: str = ""
    resume: bool = False
    confirmed: bool = False

    @cached_property
    def redactor(self) -> Redactor:
        """What replaces the secrets in the commands, their environment, and the parameters."""
        redactor = redactor_of(self.record, (parameter.name for parameter in self.parameters))
        return knowing_parameters(redactor, self.parameters, (self.record.command, self.before, self.after))

    @property
    def settings(self) -> SweepSettings:
        """The settings on which the results depend, without secrets."""
        return common_settings(self.record, self.redactor, self.before, self.after)

    @property
    def run_count(self) -> int:
        return prod(len(parameter.values) for parameter in self.parameters) * self.repeats


def parameters_of(texts: Sequence[str]) -> tuple[SweptParameter, ...]:
    """Return the parameters in the texts of -P. Raises click.UsageError."""
    if not texts:
        raise click.UsageError("no parameter given (hint: use -P concurrency=1,5,10 or -P batch=100..1000:100)")
    with errors_as(partial(click.BadParameter, param_hint="-P"), parameter_values.ParameterError):
        parameters = tuple(map(parameter_values.parameter_of, texts))
    names = [parameter.name for parameter in parameters]
    for name in names:
        if names.count(name) > 1:
            raise click.UsageError(f"the parameter {name} is given twice (hint: list all its values in one -P)")
    _require_no_column(names, (*COLUMNS, REPEAT_TAG))
    return parameters


def items_per_op_of(name: str | None, parameters: Sequence[SweptParameter]) -> str:
    """Return the parameter of --items-per-op, whose values must be numbers above 0; "" if there is none.

    Raises click.UsageError.
    """
    if name is None:
        return ""
    option = "--items-per-op"
    values = {parameter.name: parameter.values for parameter in parameters}
    if name not in values:
        message = f"'{one_line(name)}' is not a parameter (hint: use one of {', '.join(values)})"
        raise click.BadParameter(message, param_hint=option)
    for value in values[name]:
        if (number_of(value) or 0.0) <= 0:
            hint = "use integers or decimals above 0, such as 100 or 2.5"
            raise click.BadParameter(
                f"the value '{value}' of {name} is not a number of items (hint: {hint})", param_hint=option
            )
    _require_no_column(list(values), ITEM_COLUMNS)
    return name


def _require_no_column(names: Sequence[str], columns: Sequence[str]) -> None:
    """Raise click.UsageError if a parameter has the name of a column of the results."""
    for name in names:
        if name in columns:
            raise click.UsageError(f"the results have a column {name} (hint: give the parameter another name)")


def words_of(option: str, text: str | None) -> tuple[str, ...]:
    """Return the words of --before or --after, split as by a shell. Raises click.UsageError."""
    if text is None:
        return ()
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise click.BadParameter(f"'{one_line(text)}': {str(error).lower()}", param_hint=option) from None
    if not words:
        raise click.BadParameter("no command given", param_hint=option)
    return words


def require_sound(options: SweepOptions) -> None:
    """Check the options before anything starts. Raises click.UsageError and CasstatError."""
    record = options.record
    names = [parameter.name for parameter in options.parameters]
    hosts = parameter_values.HOST_PLACEHOLDERS if record.client_hosts else ()
    for name in set(names) & set(hosts):
        raise click.UsageError(f"with --client-host, {{{name}}} has a meaning of its own (hint: rename the parameter)")
    with errors_as(click.UsageError, PlaceholderError):
        words = (*record.command, *options.before, *options.after)
        parameter_values.require_match(words, names, others=hosts)
        for option, others in (("--before", options.before), ("--after", options.after), ("--client", record.clients)):
            _require_known(option, others, names)
        _require_unambiguous(record.command, hosts, options.parameters)
    require_valid(record)
    if options.run_count > MAX_RUNS:
        raise click.UsageError(f"{options.run_count:,} runs are too many (hint: use at most {MAX_RUNS:,})")
    _require_programs(options)


def _require_known(option: str, words: Sequence[str], names: Sequence[str]) -> None:
    for name in placeholders(words):
        if name not in names:
            raise PlaceholderError(f"{option}: unknown placeholder {{{name}}} (hint: define it with -P {name}=…)")


def _require_unambiguous(words: Sequence[str], hosts: Sequence[str], parameters: Sequence[SweptParameter]) -> None:
    """Raise PlaceholderError if a literal {host} or {index} would be filled in on client hosts."""
    literal = filled(words, dict.fromkeys(placeholders(words), ""))
    values = [value for parameter in parameters for value in parameter.values]
    for name in hosts:
        if any(f"{{{name}}}" in text for text in (*literal, *values)):
            raise PlaceholderError(f"with --client-host, the command cannot contain a literal {{{name}}}")


def _require_programs(options: SweepOptions) -> None:
    """Raise CasstatError if a program is not found. A program whose name has a placeholder is not looked for."""
    commands = [options.before, options.after, () if options.record.client_hosts else options.record.command]
    for words in commands:
        if words and not placeholders(words[:1]) and shutil.which(filled(words[:1], {})[0]) is None:
            raise CasstatError(f"{one_line(words[0])}: command not found")


@dataclass(frozen=True)
class PlannedRun:
    """A run of a sweep that has not ended: its number in the sweep, its combination, its repeat and its directory.

    published  the values of the combination without secrets.
    """

    number: int
    index: int
    values: dict[str, str]
    published: dict[str, str]
    repeat: int
    folder: str

    @property
    def combination(self) -> str:
        """The combination as one line, such as `concurrency=5 batch=200`."""
        return one_line(" ".join(f"{name}={value}" for name, value in self.published.items()))


def record_settings(options: SweepOptions, sweep: str, planned: PlannedRun, folder: Path) -> RecordSettings:
    """Return the settings of one run of the sweep in a directory; it is tagged with the values of the parameters."""
    record = options.record
    tags = {**dict(record.tags), **planned.published, REPEAT_TAG: str(planned.repeat)}
    return replace(
        record,
        secrets=options.redactor.values,
        command=parameter_values.filled_except_hosts(record.command, planned.values),
        clients=filled(record.clients, planned.values),
        name=accepted_name(f"{sweep} {planned.combination} r{planned.repeat}"),
        tags=tuple(tags.items()),
        folder=folder / planned.folder,
    )
