"""A stored result with impossible values is rejected with a message in one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from collector.load_results.result_file import SCHEMA_VERSION, ResultFileError, read_result


def write(path: Path, **fields: Any) -> Path:
    """Write a result with an interval that has these fields besides the mandatory ones."""
    interval = {"begin_s": 100.0, "end_s": 101.0, "completed": 10, **fields}
    operation = {"name": "", "intervals": [interval], "total": None}
    result = {"schema_version": SCHEMA_VERSION, "format": "", "tool": "", "source": "", "operations": [operation]}
    path.write_text(json.dumps(result))
    return path


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"begin_s": float("nan")}, "invalid time range"),
        ({"end_s": float("inf")}, "invalid time range"),
        ({"end_s": 99.0}, "invalid time range"),
        ({"begin_s": 10**400}, "int too large to convert to float"),
        ({"completed": -1}, "negative number of operations"),
        ({"completed": 10**400}, "impossible number of operations"),
        ({"errors": {"timeout": -1}}, "negative number of operations"),
        ({"response": {"counts": [[1000, -5]]}}, "impossible counts of latencies"),
        ({"response": {"counts": [[1000, 0]]}}, "impossible counts of latencies"),
        ({"service": {"counts": [[1000, 10**400]]}}, "impossible counts of latencies"),
        ({"service": {"counts": [[10**400, 1]]}}, "impossible counts of latencies"),
        ({"service": {"counts": [[-1000, 10]]}}, "impossible counts of latencies"),
        ({"service": {"stated_s": [[99, float("inf")]]}}, "impossible latency"),
        ({"service": {"stated_s": [[99, -1]]}}, "impossible latency"),
    ],
)
def test_impossible_values_are_rejected(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ResultFileError, match=f"^malformed field: {message}"):
        read_result(write(tmp_path / "result.json", **fields))


def test_possible_values_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "result.json", completed=0, errors={"timeout": 0}, service={"counts": [[0, 3], [9, 0]]})
    (operation,) = read_result(path).operations
    assert operation.intervals[0].service is not None
    assert operation.intervals[0].service.counts == {0: 3, 9: 0}
