"""The results of load generators that print rows: damaged output is an error, or a result that can be stored."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.load_results.client_format import ClientFormatError, CommandTimes
from collector.load_results.client_result import ClientInterval
from collector.load_results.command_output import intervals_of, last_part
from collector.load_results.format_registry import client_formats, read_as
from collector.load_results.parsing import json_objects
from collector.load_results.result_checks import doubts, require_sound
from collector.load_results.result_file import content_of, read_result, write_result
from tests.collector.load_results.mutations import damaged
from tests.every import every
from tests.examples import examples

CAPTURES = Path(__file__).parents[2] / "captures" / "clients"
TIMES = CommandTimes(1_700_000_000.0, 1_700_000_100.0)
FORMATS = {
    "ycsb-status.log": "ycsb",
    "ycsb-timeseries.log": "ycsb",
    "ycsb-two-kinds.log": "ycsb",
    "cql-stress.log": "cql-stress",
    "scylla-bench.log": "scylla-bench",
    "cql-stress-scylla-bench.log": "scylla-bench",
    "latte.log": "latte-log",
    "tlp-stress.csv": "tlp-stress",
    "nosqlbench-histostats.csv": "nosqlbench-histostats",
}


@pytest.mark.parametrize("name", FORMATS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(25))
@given(data=st.data())
def test_damaged_output_is_an_error_or_a_result_that_can_be_stored(
    tmp_path: Path, name: str, data: st.DataObject
) -> None:
    path = tmp_path / "file"
    path.write_bytes(data.draw(damaged((CAPTURES / name).read_bytes())))
    try:
        result = read_as(client_formats()[FORMATS[name]], path, TIMES)
        require_sound(result)
    except ClientFormatError:
        return
    assert result.operations
    assert all(note.isprintable() for note in (*result.notes, *doubts(result)))
    write_result(path, result)
    assert content_of(read_result(path)) == content_of(result)


# Linear work takes less than a second. A search whose work grows with the square of a line's length takes 10 s or more
# for each of these lines, and the file has six of them.
@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", FORMATS)
@every(
    "line",
    [
        "1s 1 1 1 " + "9" * 60_000,
        "   1.000 " + "1 " * 30_000 + "x",
        "X" + " for" * 16_000,
        "[READ: Count=1, Max=1, Min=1, Avg=" * 1800,
        "2026-11-29 10:00:00:000 1 sec: 1 operations; " + "[A: Count=1, Max=1, Min=1, Avg=1, 5=1" * 1500,
        "Tag=a" + ",1" * 200_000 + "x",
        "1" + ", 1" * 20_000 + "x",
        "2026-11-29T10:00:00Z" + ",1" * 200_000,
    ],
)
def test_endless_lines_are_read_in_one_pass(tmp_path: Path, name: str, line: str) -> None:
    path = tmp_path / "file"
    path.write_text(f"{(CAPTURES / name).read_text()}\n{line}\n" + f"{line}\n" * 5)
    try:
        require_sound(read_as(client_formats()[FORMATS[name]], path, TIMES))
    except ClientFormatError as error:
        message = str(error)
    else:
        message = ""
    assert len(message) < 300


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", ["\n", " ", "\n ", "\t\n\n", "\r\n", "{", "[", "<"], ids=repr)
def test_a_format_is_recognised_in_one_pass(tmp_path: Path, text: str) -> None:
    """A search whose work grows with the square of the number of empty lines would take minutes."""
    long = text * (1 << 17)
    assert not any(form.recognises(long) for form in client_formats().values())
    (tmp_path / "file").write_text(long)
    with pytest.raises((ValueError, RecursionError), match=r"no JSON object|damaged|recursion"):
        json_objects(tmp_path / "file")


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), st.integers(0, 3)), min_size=1, max_size=20),
    st.integers(0, 5),
)
def test_intervals_follow_each_other_and_have_all_operations(rows: list[tuple[int, int, int]], rest: int) -> None:
    end_s, printed = 0, []
    for length_s, completed, failed in rows:
        end_s += length_s
        printed.append(ClientInterval.stated(float(end_s), completed, failed, {99.0: 0.001}))
    completed, failed = sum(row[1] for row in rows) + rest, sum(row[2] for row in rows)
    intervals = intervals_of([*printed, *last_part(printed, end_s + 0.5, completed, failed)], 100.0)
    assert sum(interval.completed for interval in intervals) == completed
    assert sum(interval.failed for interval in intervals) == failed
    bounds = [100.0, *(interval.end_s for interval in intervals)]
    assert [interval.begin_s for interval in intervals] == bounds[:-1]
    assert bounds == sorted(bounds)


def test_rows_that_state_no_more_than_the_total_leave_no_rest() -> None:
    rows = [ClientInterval.stated(1.0, 10)]
    assert last_part(rows, 2.0, 10, 0) == []
    assert last_part(rows, 2.0, 9, 0) == []
    assert last_part(rows, 2.0, 12, 1) == [ClientInterval.stated(2.0, 2, 1)]
    assert intervals_of(rows, 5.0) == (ClientInterval(5.0, 6.0, 10),)
