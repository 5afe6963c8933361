"""The captures are generated from the programs' format strings, of their main branches in 2026-11.

scylladb/scylla-bench: `pkg/results/thread_results.go`, withLatencyLineFmt and PrintTotalResults; `auxiliary.go`, Round.
scylladb/cql-stress: `src/bin/cql-stress-scylla-bench/stats.rs`, StatsPrinter; `gocompat/strconv.rs`, format_duration.
"""

from pathlib import Path

import pytest

from collector.load_results.client_format import ClientFormatError, CommandTimes
from collector.load_results.client_result import ClientResult
from collector.load_results.format_registry import read_as, recognised_format
from collector.load_results.parsing import go_duration_s
from collector.load_results.result_checks import doubts, require_sound
from tests.every import every

CAPTURES = Path(__file__).parents[2] / "captures" / "clients"
CAPTURE, OF_CQL_STRESS = CAPTURES / "scylla-bench.log", CAPTURES / "cql-stress-scylla-bench.log"
TIMES = CommandTimes(1_700_000_000.0, 1_700_000_010.0)


def result_of(path: Path, words: tuple[str, ...] = ()) -> ClientResult:
    result = read_as(recognised_format(path), path, CommandTimes(TIMES.begin_s, TIMES.end_s, words))
    require_sound(result)
    assert result.format == "scylla-bench"
    return result


def result_of_text(path: Path, text: str) -> ClientResult:
    path.write_text(text)
    return result_of(path)


def test_rows_are_counts_since_the_row_before_and_the_total_has_the_rest() -> None:
    result = result_of(CAPTURE)
    (operation,) = result.operations
    assert (result.tool, operation.name) == ("scylla-bench", "write")
    assert [interval.completed for interval in operation.intervals] == [992, 1001, 730, 1268, 1000, 1003, 412]
    assert [interval.failed for interval in operation.intervals] == [0, 0, 5, 0, 0, 0, 0]
    assert operation.intervals[-1].end_s - operation.intervals[0].begin_s == pytest.approx(6.412345678, abs=1e-6)
    assert operation.intervals[0].service is not None
    assert operation.intervals[0].service.stated_s == {
        50: 0.0012, 90: 0.0022, 95: 0.0027, 99: 0.0039, 99.9: 0.0071, 100: 0.0071,
    }  # fmt: skip
    total = operation.total
    assert total is not None
    assert (total.completed, total.errors) == (6406, {"": 5})
    assert total.service is not None
    assert total.response is not None
    assert (total.service.stated_s[99.0], total.response.stated_s[99.0]) == (0.003849272, 0.009180354)
    assert doubts(result) == []


def test_cql_stress_counts_failed_operations_and_states_no_percentile_beyond_99() -> None:
    result = result_of(OF_CQL_STRESS)
    (operation,) = result.operations
    assert (result.tool, operation.name) == ("cql-stress", "read")
    assert [interval.completed for interval in operation.intervals] == [998, 995, 1000, 640, 212]
    assert [interval.failed for interval in operation.intervals] == [0, 7, 0, 0, 0]
    assert operation.total is not None
    assert operation.total.service is not None
    assert operation.total.completed == 3845
    assert operation.total.service.stated_s == {50: 0.00118, 90: 0.0023, 95: 0.0027, 99: 0.00391, 100: 0.00734}
    assert doubts(result) == []


@pytest.mark.parametrize(
    "option", ["-latency-type=fixed-coordinated-omission", "-latency-type fixed-coordinated-omission"]
)
def test_rows_have_response_times_if_the_command_states_it(option: str) -> None:
    (operation,) = result_of(CAPTURE, ("scylla-bench", *option.split())).operations
    assert operation.intervals[0].service is None
    assert operation.intervals[0].response is not None


def test_rows_beyond_the_raw_maximum_have_response_times(tmp_path: Path) -> None:
    text = CAPTURE.read_text().replace("6.3ms  6.3ms", "23ms   14ms  ")
    (operation,) = result_of_text(tmp_path / "log", text).operations
    assert operation.intervals[0].service is None
    assert operation.intervals[0].response is not None


def test_without_latencies_there_are_counts(tmp_path: Path) -> None:
    text = "\n time   ops/s  rows/s errors\n   1s    1000    1000      0\n   1m2.5s  61500   61500      3\n"
    (operation,) = result_of_text(tmp_path / "log", text).operations
    assert [(interval.completed, interval.failed) for interval in operation.intervals] == [(1000, 0), (61_500, 3)]
    assert operation.intervals[1].end_s - operation.intervals[0].begin_s == pytest.approx(62.5)


def test_old_versions_have_another_header_and_no_mean(tmp_path: Path) -> None:
    header = "time             operations/s  rows/s  errors  max   99.9th  99th  95th  90th  median"
    text = f"\n{header}\n1.0004s              1000    1000       2  3.1ms  3ms  2ms  1.5ms  1.2ms  900\u00b5s  \n"
    (operation,) = result_of_text(tmp_path / "log", text).operations
    (interval,) = operation.intervals
    assert (interval.completed, interval.failed) == (1000, 2)
    assert interval.service is not None
    assert interval.service.stated_s == {50: 0.0009, 90: 0.0012, 95: 0.0015, 99: 0.002, 99.9: 0.003, 100: 0.0031}


def test_a_killed_run_has_its_last_row_only_if_it_is_whole(tmp_path: Path) -> None:
    text = CAPTURE.read_text()
    end = text.index("\n   4s") + 1
    row_end = text.index("\n", end)
    whole = result_of_text(tmp_path / "log", text[:row_end])
    assert [interval.completed for interval in whole.operations[0].intervals] == [992, 1001, 730, 1268]
    assert whole.operations[0].total is None
    cut = result_of_text(tmp_path / "log", text[: row_end - 12])
    assert [interval.completed for interval in cut.operations[0].intervals] == [992, 1001, 730]
    assert any("middle of a line" in note for note in cut.notes)


def test_rows_with_the_same_time_are_one_interval_without_percentiles(tmp_path: Path) -> None:
    header = " time   ops/s  rows/s errors max    99.9th 99th   95th   90th   median mean   "
    row = "   {}s    {}    1000      1 3ms    3ms    3ms    2ms    2ms    900\u00b5s  1ms    "
    text = "\n".join(["", header, row.format(1, 1000), row.format(6, 700), row.format(6, 300), ""])
    (operation,) = result_of_text(tmp_path / "log", text).operations
    assert [(interval.completed, interval.failed) for interval in operation.intervals] == [(1000, 1), (1000, 2)]
    assert operation.intervals[1].end_s - operation.intervals[1].begin_s == 5
    assert operation.intervals[1].service is None


def test_of_several_runs_the_last_one_counts(tmp_path: Path) -> None:
    result = result_of_text(tmp_path / "log", OF_CQL_STRESS.read_text() + CAPTURE.read_text())
    assert result.operations == result_of(CAPTURE).operations
    assert any("1 earlier run" in note for note in result.notes)


def test_a_total_below_that_of_the_rows_has_a_note(tmp_path: Path) -> None:
    result = result_of_text(tmp_path / "log", CAPTURE.read_text().replace("Total ops:\t 6406", "Total ops:\t 5000"))
    assert any("states 5,000 completed" in note for note in doubts(result))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("   2s    1001", "   2s    -1001", "line 28: malformed row"),
        ("4.8ms  4.6ms", "4.8ms  4.6    ", "line"),
        ("   5s    1000", "   3s    1000", "follows"),
        ("Time (avg):\t 6.412345678s", "Time (avg):\t soon", "line 34: not a duration"),
    ],
)
def test_damaged_output_is_an_error(tmp_path: Path, old: str, new: str, reason: str) -> None:
    text = CAPTURE.read_text()
    assert old in text
    with pytest.raises(ClientFormatError, match=reason):
        result_of_text(tmp_path / "log", text.replace(old, new, 1))


@every(
    ("text", "seconds"),
    [("0s", 0), ("0", 0), ("17ns", 17e-9), ("456\u00b5s", 456e-6), ("456\u03bcs", 456e-6), ("1.2ms", 0.0012),
     ("3m2.1s", 182.1), ("1h0m0.5s", 3600.5), ("2.000000001s", 2.000000001)],
)  # fmt: skip
def test_durations_are_those_of_go(text: str, seconds: float) -> None:
    assert go_duration_s(text) == pytest.approx(seconds)


@every("text", ["", "5", "ms", "-1s", "1s2", "1x", "1 s", "NaN"])
def test_other_texts_are_not_durations(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        go_duration_s(text)
