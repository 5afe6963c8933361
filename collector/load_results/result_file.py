"""Client results as JSON files in a run's directory, one for each imported file.

The counts of a latency are a list of pairs of numbers: the difference from the previous value in nanoseconds, and the
count.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import Any

from collector.file_access import replace_file
from collector.garbage_collection import gc_paused
from collector.load_results.client_result import ClientInterval, ClientResult, Latency
from collector.load_results.result_checks import require_values
from collector.printable import one_line
from collector.stored_json import read_content, value_of

FOLDER = "clients"
SCHEMA_VERSION = 1
MAX_BYTES = 1 << 30


class ResultFileError(ValueError):
    """A file is not a client result; the message is one line without the path."""


def content_of(result: ClientResult) -> dict[str, Any]:
    fields = {key: value for key, value in vars(result).items() if key not in ("operations", "stated")}
    return {
        "schema_version": SCHEMA_VERSION,
        **fields,
        "operations": [
            {
                "name": operation.name,
                "intervals": [_interval_content(interval) for interval in operation.intervals],
                "total": None if operation.total is None else _interval_content(operation.total),
            }
            for operation in result.operations
        ],
    }


def _interval_content(interval: ClientInterval) -> dict[str, Any]:
    content: dict[str, Any] = {
        "begin_s": round(interval.begin_s, 6),
        "end_s": round(interval.end_s, 6),
        "completed": interval.completed,
    }
    if interval.errors:
        content["errors"] = dict(interval.errors)
    for kind in ("response", "service"):
        latency: Latency | None = getattr(interval, kind)
        if latency is not None:
            content[kind] = _latency_content(latency)
    return content


def _latency_content(latency: Latency) -> dict[str, Any]:
    if not latency.counts:
        return {"stated_s": [[percentage, value_s] for percentage, value_s in sorted(latency.stated_s.items())]}
    values = sorted(latency.counts)
    steps = (value - before for before, value in zip([0, *values], values, strict=False))
    return {"counts": [[step, latency.counts[value]] for step, value in zip(steps, values, strict=True)]}


def write_result(path: Path, result: ClientResult) -> None:
    """Write a result to a file. Raises OSError; the previous file then remains unchanged."""
    replace_file(path, json.dumps(content_of(result), allow_nan=False).encode() + b"\n")


@gc_paused()
def read_result(path: Path) -> ClientResult:
    """Return the result in a file. Raises ResultFileError and OSError."""
    # `require_values` states the time of an impossible number.
    return result_of(read_content(path, ResultFileError, MAX_BYTES, constant=float))


def result_of(content: Any) -> ClientResult:
    """Return the result that a file with this JSON content has. Raises ResultFileError."""
    if not isinstance(content, dict) or content.get("schema_version") != SCHEMA_VERSION:
        raise ResultFileError("not a client result of a supported version (hint: update casstat)")
    try:
        content = {**content, "operations": [*map(_with_latencies, content["operations"])]}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ResultFileError(f"malformed field: {one_line(error)}") from None
    return value_of(content, ClientResult, ResultFileError, _require_possible)


def _with_latencies(operation: Mapping[str, Any]) -> dict[str, Any]:
    """Return an operation in decoded JSON with mappings instead of pairs.

    Raises KeyError, TypeError, ValueError and AttributeError.
    """
    total = operation.get("total")
    intervals = [*map(_with_mappings, operation["intervals"])]
    return {**operation, "intervals": intervals, "total": None if total is None else _with_mappings(total)}


def _with_mappings(interval: Mapping[str, Any]) -> dict[str, Any]:
    known = {kind: interval[kind] for kind in ("response", "service") if interval.get(kind) is not None}
    return {**interval, **{kind: _latency(latency) for kind, latency in known.items()}}


def _latency(content: Mapping[str, Any]) -> dict[str, Any]:
    pairs: Sequence[Sequence[Any]] = content.get("counts", ())
    if not set(map(len, pairs)) <= {2}:
        raise ValueError("counts must be pairs")
    # There may be millions of pairs, so they are converted without a loop in Python.
    values = accumulate(map(itemgetter(0), pairs))
    return {
        "counts": dict(zip(values, map(itemgetter(1), pairs), strict=True)),
        "stated_s": dict(content.get("stated_s", ())),
    }


def _require_possible(result: ClientResult) -> None:
    for part in result.parts:
        require_values(part)
