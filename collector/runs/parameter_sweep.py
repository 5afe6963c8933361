"""A sweep: a run for each combination of parameters and each repeat; and its file `sweep.json`, without secrets.

Times are in seconds since the epoch. Within a schema version, fields may be added to the file, but the meaning of
existing fields does not change; readers ignore unknown fields.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from collector.file_access import write_json
from collector.redaction.redactor import Redactor
from collector.redaction.secret_forms import is_secret_name
from collector.runs.run_file import require_inside
from collector.stored_json import read_content, require_version, value_of

FILE = "sweep.json"
SCHEMA_VERSION = 1
RANDOM, GIVEN = "random", "given"
"""The orders of a sweep's combinations."""
_KEPT_SETTINGS = ("settings.nodes", "settings.seeds", "settings.client_hosts")
KEPT_FIELDS = ("casstat", "order", "items_per_op", "parameters.name", "runs.folder", *_KEPT_SETTINGS)
"""The texts that casstat needs to read and continue a sweep."""
KEPT_IN_SEARCHES = ("objectives", "steps.folder", "steps.purpose", *_KEPT_SETTINGS)
"""The same for a search."""


@dataclass(frozen=True)
class SweptParameter:
    """A parameter and its values in the order in which they were given, all different."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class SweepSettings:
    """The settings that each run of a sweep or a search has in common, and on which its results depend.

    command, before, after  the words of the command, and of the commands that run before and after each run, with
                            placeholders for the parameters; no words if there is no such command.
    nodes, seeds            the nodes, as they were given.
    client_hosts            the addresses of the client hosts.
    clients                 the files with client results, with placeholders.
    duration_s              the time after which the command is ended; None if there is no limit.
    warm_up_s, cool_down_s  the durations of the warm-up and the cool-down.
    mark_regex              the pattern of marks; "" if there is none.
    tags                    the tags of all runs, as KEY=VALUE.
    """

    command: tuple[str, ...]
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    client_hosts: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    duration_s: float | None = None
    warm_up_s: float = 0.0
    cool_down_s: float = 0.0
    mark_regex: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class SweepRun:
    """A run of a sweep that has ended.

    folder            the run's directory, relative to the sweep's; it does not exist if the run could not begin.
    begin_s, end_s    when casstat began and completed the run.
    problem           why the run failed, as one line; "" if it succeeded.
    """

    folder: str
    begin_s: float
    end_s: float
    problem: str = ""


@dataclass(frozen=True)
class Sweep:
    """A sweep: its parameters and settings, the order of its runs, and the runs that have ended.

    order         RANDOM or GIVEN.
    order_seed    the number that determines the random order.
    repeats       the number of runs of each combination.
    pause_s       the time between two runs.
    items_per_op  the parameter whose value is the number of items, such as rows of a batch, per operation; "" if the
                  results have no throughput in items. Only the presentation of the results depends on it.
    """

    name: str
    begin_s: float
    casstat: str
    parameters: tuple[SweptParameter, ...]
    settings: SweepSettings
    order: str
    order_seed: int
    repeats: int = 1
    pause_s: float = 0.0
    items_per_op: str = ""
    runs: tuple[SweepRun, ...] = ()

    @property
    def run_count(self) -> int:
        """The number of all runs, including those that have not ended."""
        return prod(len(parameter.values) for parameter in self.parameters) * self.repeats

    def combinations(self) -> list[dict[str, str]]:
        """Return the values of all parameters for each combination; the last parameter changes fastest."""
        names = [parameter.name for parameter in self.parameters]
        values = product(*(parameter.values for parameter in self.parameters))
        return [dict(zip(names, combination, strict=True)) for combination in values]

    def schedule(self) -> Iterator[tuple[int, int]]:
        """Yield the index of the combination and the repeat, counted from 1, of each run in the order of the sweep.

        Each repeat is a complete pass over all combinations, so that a slow change does not affect only some of them.
        """
        indices = range(len(self.combinations()))
        for repeat in range(1, self.repeats + 1):
            ordered = sorted(indices, key=lambda index: self._rank(repeat, index)) if self.order == RANDOM else indices
            yield from ((index, repeat) for index in ordered)

    def _rank(self, repeat: int, index: int) -> bytes:
        """Return a number that determines a combination's position, and is the same in all versions of Python."""
        return sha256(f"{self.order_seed} {repeat} {index}".encode()).digest()


def knowing_parameters(
    redactor: Redactor, parameters: Sequence[SweptParameter], commands: Sequence[Sequence[str]]
) -> Redactor:
    """Return a redactor that knows the secrets in commands with placeholders, and those among the parameters' values.

    The values of a parameter are secrets if its name says so, if its placeholder stands for a secret in a command, or
    if they could not be told apart without the secrets in them.
    """
    bare = Redactor(redactor.patterns)
    redactor = replace(redactor, placeholders=redactor.placeholders | {parameter.name for parameter in parameters})
    for command in commands:
        redactor = redactor.knowing_command(command)
    for parameter in parameters:
        field = f"{{{parameter.name}}}"
        if (
            is_secret_name(parameter.name)
            or len(set(map(redactor.value, parameter.values))) < len(parameter.values)
            or any("".join(bare.words(command)).count(field) < "".join(command).count(field) for command in commands)
        ):
            redactor = redactor.numbering(parameter.values)
    return redactor


def redacted_parameters(parameters: Sequence[SweptParameter], redactor: Redactor) -> tuple[SweptParameter, ...]:
    """Return the parameters with numbers instead of values that are secrets, which must be known."""
    return tuple(
        SweptParameter(parameter.name, tuple(map(redactor.value, parameter.values))) for parameter in parameters
    )


def redacted_sweep(sweep: Sweep, redactor: Redactor) -> Sweep:
    """Return the sweep with the secrets in its texts replaced, except in KEPT_FIELDS."""
    settings = sweep.settings
    commands = (settings.command, settings.before, settings.after)
    redactor = knowing_parameters(redactor, sweep.parameters, commands)
    return replace(
        sweep,
        name=redactor.text(sweep.name),
        parameters=redacted_parameters(sweep.parameters, redactor),
        settings=replace(
            settings,
            command=redactor.words(settings.command),
            before=redactor.words(settings.before),
            after=redactor.words(settings.after),
            clients=tuple(map(redactor.text, settings.clients)),
            mark_regex=redactor.text(settings.mark_regex),
            tags=tuple(map(redactor.text, settings.tags)),
        ),
        runs=tuple(replace(run, problem=redactor.text(run.problem)) for run in sweep.runs),
    )


class SweepFileError(ValueError):
    """A sweep's file is malformed or of an unknown version; the message is one line without the path."""


def sweep_content(sweep: Sweep) -> dict[str, Any]:
    """Return the content of the sweep's file, without the secrets that have a known form."""
    return {"schema_version": SCHEMA_VERSION, **asdict(redacted_sweep(sweep, Redactor()))}


def write_sweep(folder: Path, sweep: Sweep) -> None:
    """Write the sweep's file to its directory. Raises OSError; the previous file then remains unchanged."""
    write_json(folder / FILE, sweep_content(sweep))


def read_sweep(folder: Path) -> Sweep:
    """Return the sweep in a directory. Raises SweepFileError, and OSError if the file cannot be read."""
    return sweep_of(read_content(folder / FILE, SweepFileError))


def sweep_of(content: Any) -> Sweep:
    """Return the sweep described by the decoded JSON of a sweep's file, without secrets. Raises SweepFileError."""
    require_version(content, SCHEMA_VERSION, "sweep", SweepFileError)
    return redacted_sweep(value_of(content, Sweep, SweepFileError, _require_possible), Redactor())


def _require_possible(sweep: Sweep) -> None:
    for number, parameter in enumerate(sweep.parameters):
        if not parameter.values or len(set(parameter.values)) < len(parameter.values):
            raise ValueError(f"a parameter has no values, or the same value twice (at parameters[{number}])")
    require_command(sweep.settings)
    if sweep.order not in (RANDOM, GIVEN):
        raise ValueError(f"'{sweep.order[:40]}' is not an order (at order)")
    for name, count, least in (("order_seed", sweep.order_seed, 0), ("repeats", sweep.repeats, 1)):
        if count < least:
            raise ValueError(f"{count} is not a count (at {name})")
    for number, run in enumerate(sweep.runs):
        require_inside(run.folder, "sweep", f"runs[{number}].folder")


def require_command(settings: SweepSettings) -> None:
    """Raise ValueError if the settings of a sweep or a search, as read from a file, have no command."""
    if not settings.command:
        raise ValueError("the command has no words (at settings.command)")
