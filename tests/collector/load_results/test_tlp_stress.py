"""The captures are generated as by the programs' FileReporter (init and report) and Run (execute).

thelastpickle/tlp-stress 5.0 and rustyrazorblade/easy-cass-stress 7: `FileReporter.kt` and `commands/Run.kt`. In the
former's capture, nothing completes between the second and the third row.
"""

from pathlib import Path

import pytest

from collector.load_results.client_format import ClientFormatError, CommandTimes
from collector.load_results.client_result import ClientResult, Operation
from collector.load_results.format_registry import read_as, recognised_format
from collector.load_results.result_checks import doubts, require_sound
from tests.every import every

CAPTURES = Path(__file__).parents[2] / "captures" / "clients"
TLP, EASY = CAPTURES / "tlp-stress.csv", CAPTURES / "easy-cass-stress.csv"
TIMES = CommandTimes(1_700_000_000.0, 1_700_000_100.0)
BEGIN_S = 1_795_946_400.0


def result_of(path: Path) -> ClientResult:
    result = read_as(recognised_format(path), path, TIMES)
    require_sound(result)
    assert result.format == "tlp-stress"
    assert doubts(result) == []
    return result


def result_of_text(path: Path, text: str) -> ClientResult:
    path.write_text(text)
    return result_of(path)


def operation(result: ClientResult, name: str) -> Operation:
    return next(operation for operation in result.operations if operation.name == name)


def bounds(operation: Operation) -> list[float]:
    return [operation.intervals[0].begin_s - BEGIN_S, *(interval.end_s - BEGIN_S for interval in operation.intervals)]


def test_cumulative_counts_become_intervals_that_end_at_the_rows_times() -> None:
    result = result_of(TLP)
    assert [operation.name for operation in result.operations] == ["", "mutations", "reads"]
    mutations = operation(result, "mutations")
    assert [interval.completed for interval in mutations.intervals] == [1502, 1501, 0, 1517, 1501, 350]
    # The programs populate tables before the run, so the time since their start is longer than that of the load.
    assert bounds(mutations) == pytest.approx([12.204, 15.204, 18.204, 21.205, 24.204, 27.204, 27.904], abs=1e-6)
    errors = operation(result, "")
    assert [interval.failed for interval in errors.intervals] == [0, 0, 0, 6, 0, 0]
    assert not result.estimated_clock


def test_percentiles_of_a_decaying_reservoir_are_not_those_of_intervals() -> None:
    result = result_of(TLP)
    assert all(interval.service is None for operation in result.operations for interval in operation.intervals)
    (note,) = result.notes
    assert "mutations 3.787370 ms" in note
    assert "decaying" in note


def test_the_last_interval_ends_with_the_load_not_with_the_row() -> None:
    result = result_of(EASY)
    assert (result.tool, [operation.name for operation in result.operations]) == (
        "easy-cass-stress",
        ["mutations", "reads"],
    )
    reads = operation(result, "reads")
    assert [interval.completed for interval in reads.intervals] == [1498, 1499, 1500, 1500, 500]
    assert bounds(reads) == pytest.approx([2.204, 5.204, 8.204, 11.204, 14.204, 16.404], abs=1e-6)


def test_a_killed_run_ends_with_its_last_whole_row(tmp_path: Path) -> None:
    text = TLP.read_text()
    result = result_of_text(tmp_path / "file.csv", text[: text.index("28.904") + 40])
    assert bounds(operation(result, "reads"))[-1] == pytest.approx(27.204, abs=1e-6)
    assert any("incomplete" in note for note in result.notes)


def test_files_that_were_concatenated_have_the_intervals_of_both(tmp_path: Path) -> None:
    result = result_of_text(tmp_path / "file.csv", EASY.read_text() + TLP.read_text().replace("10:00:", "10:01:"))
    reads = operation(result, "reads")
    assert [interval.completed for interval in reads.intervals] == [
        1498,
        1499,
        1500,
        1500,
        500,
        1498,
        1499,
        0,
        1483,
        1499,
        350,
    ]


def test_variants_with_other_columns_are_read_by_their_names(tmp_path: Path) -> None:
    columns = "Count,Latency (min),Latency (p50),Latency (p99),Latency (max),1min (req/s)"
    text = (
        "# tlp-stress run at Tue Nov 09 20:01:33 UTC 2021\n,,Mutations,,,Reads,,,Deletes,,,Errors,\n"
        f"Timestamp, Elapsed Time,{','.join([columns] * 3)},Count,1min (errors/s)\n"
        "2021-11-09T20:02:58.463608846Z,85,63430,0.2,0.5,8.1,21.8,973.5,16008,0.2,0.6,16.6,39.8,246.1,0,0.0,0.0,0.0,0.0,0.0,7,0.1\n"
    )
    result = result_of_text(tmp_path / "file.csv", text)
    assert {operation.name: operation.intervals[0].completed for operation in result.operations} == {
        "": 0, "mutations": 63_430, "reads": 16_008,
    }  # fmt: skip
    assert operation(result, "").intervals[0].failed == 7
    assert "reads 16.6 ms" in result.notes[0]
    (interval,) = operation(result, "reads").intervals
    assert interval.end_s - interval.begin_s == pytest.approx(3)
    text = (
        ",,Mutations,,,Reads,,,Deletes,,,Errors,,InFlights,RequestQueueDepth\nEpoch Time (ms), Elapsed Time (ms),"
        f"{'Count,Latency (us) (p99),1min (req/s),' * 3}Count,1min (errors/s),Count,Count\n"
        "1795946403000,3000,100,9.0,1.0,50,9.0,1.0,0,0.0,0.0,0,0.0,17,3\n"
    )
    result = result_of_text(tmp_path / "file.csv", text)
    assert {operation.name: operation.intervals[0].completed for operation in result.operations} == {
        "mutations": 100, "reads": 50,
    }  # fmt: skip
    assert bounds(operation(result, "reads")) == pytest.approx([0, 3])


@every(
    ("old", "new", "reason"),
    [
        (",,Mutations,,,Reads,,,Deletes,,,Errors,\n", "", "names for its columns"),
        (",3003,3.6", ",2003,3.6", "line 7: the time or a count is lower"),
        ("10:00:24", "09:00:24", "line 8: the time or a count is lower"),
        (",4520,", ",-4520,", "line 8: not a whole number: -4520"),
        (",4520,", ",4520,0,", "line 8: 14 fields"),
        ("10:00:24.204000Z", "10:00:24.204000", "line 8: the time has no time zone"),
        (",24,4520", ",NaN,4520", "line 8"),
    ],
)
def test_damaged_files_are_an_error(tmp_path: Path, old: str, new: str, reason: str) -> None:
    text = TLP.read_text()
    assert old in text
    with pytest.raises(ClientFormatError, match=reason):
        result_of_text(tmp_path / "file.csv", text.replace(old, new, 1))
