"""The settings on which the results of a sweep's or a search's runs depend, and how those of two differ."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from shlex import join

from cli.runs.record_program import RecordSettings
from collector.printable import excerpts, single_line
from collector.redaction.redactor import Redactor
from collector.runs.parameter_sweep import SweepSettings

_SHOWN_CHARS = 80
_LABELS = {"clients": "--client", "client_hosts": "--client-host", "seeds": "--seed", "tags": "--tag"}


def common_settings(
    record: RecordSettings, redactor: Redactor, before: Sequence[str] = (), after: Sequence[str] = ()
) -> SweepSettings:
    """Return the settings that runs have in common, without secrets.

    `before` and `after` are the words of the commands that run before and after each run.
    """
    return SweepSettings(
        redactor.words(record.command),
        redactor.words(tuple(before)),
        redactor.words(tuple(after)),
        record.nodes,
        record.seeds,
        record.client_hosts,
        tuple(map(redactor.text, record.clients)),
        record.duration,
        record.warm_up,
        record.cool_down,
        "" if record.mark_regex is None else redactor.text(record.mark_regex.pattern.decode(errors="backslashreplace")),
        tuple(redactor.text(f"{key}={value}") for key, value in record.tags),
    )


def differences(existing: SweepSettings, planned: SweepSettings) -> Iterator[str]:
    """Yield how existing settings differ from the planned ones."""
    for field in fields(existing):
        before, after = (_value_text(getattr(settings, field.name)) for settings in (existing, planned))
        if before != after:
            label = _LABELS.get(field.name, field.name.removesuffix("_s").replace("_", "-"))
            before, after = excerpts(single_line(before), single_line(after), _SHOWN_CHARS)
            yield f"its {label} is {before} instead of {after}"


def _value_text(value: object) -> str:
    if isinstance(value, tuple):
        return f"'{join(value)}'" if value else "absent"
    if isinstance(value, float):
        return f"{value:g} s"
    return f"'{value}'" if value else "absent"
