"""A sweep's metadata: the file `sweep.json` in its directory.

Within a schema version, fields may be added, but the meaning of existing fields does not change; readers ignore unknown
fields.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Any

from collector.atomic_file import write_json
from collector.printable import one_line
from collector.redaction.redactor import Redactor
from collector.runs.parameter_sweep import GIVEN, RANDOM, Sweep, SweepRun, SweepSettings, SweptParameter
from collector.runs.redacted_sweep import redacted_sweep
from collector.runs.run_file import number_of, text_of
from collector.whole_file import UnsuitableFileError, read_whole

FILE = "sweep.json"
SCHEMA_VERSION = 1
_TEXT_LISTS = ("command", "before", "after", "nodes", "seeds", "client_hosts", "clients", "tags")


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
    try:
        content = json.loads(read_whole(folder / FILE))
    except UnsuitableFileError as error:
        raise SweepFileError(str(error)) from None
    except (ValueError, RecursionError):
        raise SweepFileError("not JSON") from None
    return sweep_of(content)


def sweep_of(content: Any) -> Sweep:
    """Return the sweep described by the decoded JSON of a sweep's file, without secrets. Raises SweepFileError."""
    if not isinstance(content, dict) or type(content.get("schema_version")) is not int:
        raise SweepFileError("not a sweep")
    if content["schema_version"] != SCHEMA_VERSION:
        version = str(content["schema_version"])[:20]
        raise SweepFileError(f"schema version {version} is not supported (hint: update casstat)")
    try:
        sweep = Sweep(
            text_of(content["name"]),
            number_of(content["begin_s"]),
            text_of(content["casstat"]),
            tuple(map(_parameter, _sequence(content["parameters"]))),
            settings_of_content(content["settings"]),
            _order(content["order"]),
            _count(content["order_seed"], 0),
            _count(content.get("repeats", 1), 1),
            number_of(content.get("pause_s", 0.0)),
            text_of(content.get("items_per_op", "")),
            tuple(map(_run, _sequence(content.get("runs", ())))),
        )
        return redacted_sweep(sweep, Redactor())
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SweepFileError(f"malformed field: {one_line(error)}") from None


def _parameter(content: Mapping[str, Any]) -> SweptParameter:
    values = tuple(map(text_of, _sequence(content["values"])))
    if not values or len(set(values)) < len(values):
        raise ValueError("a parameter has no values, or the same value twice")
    return SweptParameter(text_of(content["name"]), values)


def settings_of_content(content: Mapping[str, Any]) -> SweepSettings:
    """Return the settings described by the decoded JSON of a sweep's or a search's file.

    Raises KeyError, TypeError and ValueError.
    """
    texts = {name: tuple(map(text_of, _sequence(content.get(name, ())))) for name in _TEXT_LISTS}
    if not texts["command"]:
        raise ValueError("the command has no words")
    duration_s = content.get("duration_s")
    return SweepSettings(
        **texts,
        duration_s=None if duration_s is None else number_of(duration_s),
        warm_up_s=number_of(content.get("warm_up_s", 0.0)),
        cool_down_s=number_of(content.get("cool_down_s", 0.0)),
        mark_regex=text_of(content.get("mark_regex", "")),
    )


def _run(content: Mapping[str, Any]) -> SweepRun:
    folder = text_of(content["folder"])
    path = PurePosixPath(folder)
    if not path.parts or path.is_absolute() or ".." in path.parts or not folder.isprintable():
        raise ValueError(f"'{one_line(folder[:40])}' is not a path inside the sweep's directory")
    problem = text_of(content.get("problem", ""))
    return SweepRun(folder, number_of(content["begin_s"]), number_of(content["end_s"]), problem)


def _order(value: Any) -> str:
    if value not in (RANDOM, GIVEN):
        raise ValueError(f"'{one_line(str(value)[:40])}' is not an order")
    return str(value)


def _sequence(value: Any) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{one_line(str(value)[:40])} is not a list")
    return value


def _count(value: Any, least: int) -> int:
    if type(value) is not int or value < least:
        raise TypeError(f"{one_line(str(value)[:40])} is not a count")
    return value
