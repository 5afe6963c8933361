"""The capture is generated from the format strings of scylladb/cql-stress, of its main branch in 2026-11.

`src/bin/cql-stress-cassandra-stress/stats.rs`: StatsPrinter's print_header, print_partial and print_summary.
"""

from pathlib import Path

import pytest

from collector.load_results.client_format import ClientFormatError, CommandTimes
from collector.load_results.client_result import ClientResult
from collector.load_results.format_registry import read_as, recognised_format
from collector.load_results.result_checks import doubts, require_sound
from tests.every import every

CAPTURE = Path(__file__).parents[2] / "captures" / "clients" / "cql-stress.log"
TIMES = CommandTimes(1_700_000_000.0, 1_700_000_010.0)


def result_of(path: Path) -> ClientResult:
    result = read_as(recognised_format(path), path, TIMES)
    require_sound(result)
    assert result.format == "cql-stress"
    return result


def result_of_text(path: Path, text: str) -> ClientResult:
    path.write_text(text)
    return result_of(path)


def test_the_capture_has_its_counts_errors_stall_and_last_part() -> None:
    result = result_of(CAPTURE)
    (operation,) = result.operations
    assert operation.name == "write"
    assert [interval.completed for interval in operation.intervals] == [1004, 988, 1001, 0, 1996, 503]
    assert [interval.failed for interval in operation.intervals] == [0, 9, 0, 0, 0, 0]
    lengths = [interval.end_s - interval.begin_s for interval in operation.intervals]
    assert lengths == pytest.approx([1, 1, 1, 1, 1, 0.501], abs=0.001)
    assert operation.intervals[-1].end_s == TIMES.end_s
    first, total = operation.intervals[0], operation.total
    # The option `fixed` was given.
    assert first.service is None
    assert first.response is not None
    assert first.response.stated_s == {50: 0.0012, 95: 0.0028, 99: 0.004, 99.9: 0.0054, 100: 0.0054}
    assert operation.intervals[3].response is None
    assert total is not None
    assert total.response is not None
    assert (total.completed, total.errors, total.response.stated_s[99.9]) == (5492, {"": 9}, 0.0056)
    assert (result.notes, doubts(result)) == ((), [])


def test_without_fixed_the_latencies_are_service_times(tmp_path: Path) -> None:
    text = CAPTURE.read_text().replace("latencies: true", "latencies: false").replace("Type: write", "Type: mixed")
    result = result_of_text(tmp_path / "log", text)
    assert result.has_only_service_time
    assert result.operations[0].name == ""


def test_a_killed_run_has_its_whole_rows(tmp_path: Path) -> None:
    text = CAPTURE.read_text()
    result = result_of_text(tmp_path / "log", text[: text.index("      4998") + 30])
    (operation,) = result.operations
    assert ([interval.completed for interval in operation.intervals], operation.total) == ([1004, 988, 1001, 0], None)
    assert any("totals of the run are missing" in note for note in result.notes)
    assert any("middle of a line" in note for note in result.notes)


def test_without_the_last_line_the_duration_is_that_of_the_rate(tmp_path: Path) -> None:
    assert result_of_text(tmp_path / "log", CAPTURE.read_text().rstrip()).operations == result_of(CAPTURE).operations


def test_lines_of_other_programs_do_not_matter(tmp_path: Path) -> None:
    lines = CAPTURE.read_text().splitlines()
    mixed = "\r\n".join(f"{line}\r\n2026-11-29T10:00:01Z  WARN driver: 1, 2, 3" for line in lines)
    assert result_of_text(tmp_path / "log", mixed + "\r\n").operations == result_of(CAPTURE).operations


def test_of_several_runs_the_last_one_counts(tmp_path: Path) -> None:
    result = result_of_text(tmp_path / "log", CAPTURE.read_text().replace("1004", "1003") + CAPTURE.read_text())
    assert result.operations == result_of(CAPTURE).operations
    assert any("1 earlier run" in note for note in result.notes)


def test_totals_that_contradict_the_rows_have_a_note(tmp_path: Path) -> None:
    text = CAPTURE.read_text().replace(
        "Total operations          :       5501", "Total operations          :       4000"
    )
    assert any("states 3,991" in note for note in doubts(result_of_text(tmp_path / "log", text)))


@every(
    ("old", "new", "reason"),
    [
        ("      2001,     997", "      1001,     997", "line 19: the number of operations contradicts"),
        ("    2.0,      9", "    2.0,   9999", "line 19"),
        ("     1.4,     1.2", "     x.4,     1.2", "line 18: malformed row"),
        ("    3.0,      0", "    0.5,      0", "follows"),
        ("     4.0,     5.4", "999999999999.0,     5.4", "not a latency"),
        ("Latency max               :    6.4", "Latency max               :    999999999999.4", "not a latency"),
        ("Total errors              :          9", "Total errors              :      99999", "more failed"),
    ],
)
def test_damaged_output_is_an_error(tmp_path: Path, old: str, new: str, reason: str) -> None:
    text = CAPTURE.read_text()
    assert old in text
    with pytest.raises(ClientFormatError, match=reason):
        result_of_text(tmp_path / "log", text.replace(old, new, 1))
