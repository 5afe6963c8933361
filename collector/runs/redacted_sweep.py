"""A sweep's metadata without secrets."""

from collections.abc import Sequence
from dataclasses import replace

from collector.redaction.redactor import Redactor
from collector.redaction.secret_forms import is_secret_name
from collector.runs.parameter_sweep import Sweep, SweepSettings, SweptParameter

_KEPT_SETTINGS = ("settings.nodes", "settings.seeds", "settings.client_hosts")
KEPT_FIELDS = ("casstat", "order", "items_per_op", "parameters.name", "runs.folder", *_KEPT_SETTINGS)
"""The texts that casstat needs to read and continue a sweep."""
KEPT_IN_SEARCHES = ("objectives", "steps.folder", "steps.purpose", *_KEPT_SETTINGS)
"""The same for a search."""


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
        settings=redacted_settings(settings, redactor),
        runs=tuple(replace(run, problem=redactor.text(run.problem)) for run in sweep.runs),
    )


def redacted_settings(settings: SweepSettings, redactor: Redactor) -> SweepSettings:
    """Return the settings with the secrets in their texts replaced."""
    return replace(
        settings,
        command=redactor.words(settings.command),
        before=redactor.words(settings.before),
        after=redactor.words(settings.after),
        clients=tuple(map(redactor.text, settings.clients)),
        mark_regex=redactor.text(settings.mark_regex),
        tags=tuple(map(redactor.text, settings.tags)),
    )
