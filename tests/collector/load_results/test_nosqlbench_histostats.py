"""The capture is generated as by nosqlbench/nosqlbench 5.17's HistoStatsCSVWriter (startLogging and writeInterval).

`nb-api/src/main/java/io/nosqlbench/nb/api/engine/metrics/HistoStatsCSVWriter.java` and `HistoStatsLogger.java`.
"""

from pathlib import Path

import pytest

from collector.load_results.client_format import ClientFormatError, CommandTimes, SourceFile
from collector.load_results.client_result import ClientResult
from collector.load_results.format_registry import recognised_format
from collector.load_results.formats import nosqlbench_histostats
from collector.load_results.result_checks import require_sound
from tests.every import every

CAPTURE = Path(__file__).parents[2] / "captures" / "clients" / "nosqlbench-histostats.csv"
TIMES = CommandTimes(1_700_000_000.0, 1_700_000_100.0)
HEADER = (
    "#logging stats for session scenario-1\n#[Histogram log format version 1.0]\n"
    "#[StartTime: 1479089852.046 (seconds since epoch), Sun Nov 13 20:17:32 CST 2016]\n"
    "#Tag,Interval_Start,Interval_Length,count,min,p25,p50,p75,p90,p95,p98,p99,p999,p9999,max\n"
)


def result_of(path: Path, **options: str) -> ClientResult:
    form = recognised_format(path)
    assert form.name == "nosqlbench-histostats"
    result = nosqlbench_histostats.read(SourceFile("nosqlbench-histostats", path, TIMES, options))
    require_sound(result)
    return result


def result_of_rows(path: Path, *rows: str, **options: str) -> ClientResult:
    path.write_text("".join([HEADER, *(f"{row}\n" for row in rows)]))
    return result_of(path, **options)


def row(tag: str, begin: str = "0.0", count: int = 10, **values: int) -> str:
    percentiles = {**dict.fromkeys(("p25", "p50", "p75", "p90", "p95", "p98", "p99"), 2_000_000), **values}
    numbers = [values.get("min", 1_000_000), *percentiles.values()][:8]
    high = values.get("max", 5_000_000)
    return f"Tag={tag},{begin},1.000,{count},{','.join(map(str, [*numbers, high, values.get('p9999', high), high]))}"


def test_of_several_metrics_one_is_imported() -> None:
    result = result_of(CAPTURE)
    (operation,) = result.operations
    assert operation.name == "cqlkv"
    # What `result` has more than `result-success` are errors.
    assert [interval.completed for interval in operation.intervals] == [9534, 9989, 0, 9999, 7265]
    assert [interval.failed for interval in operation.intervals] == [0, 12, 0, 0, 0]
    bounds = [operation.intervals[0].begin_s, *(interval.end_s for interval in operation.intervals)]
    assert [bound - 1_795_946_400.046 for bound in bounds] == pytest.approx(
        [0.512, 10.046, 20.047, 30.046, 40.047, 47.312]
    )
    first = operation.intervals[0].service
    assert first is not None
    assert first.stated_s == {
        0: 0.000194063, 25: 0.000793288, 50: 0.001101167, 75: 0.001539033, 90: 0.002084026, 95: 0.002508057,
        98: 0.003085246, 99: 0.003519398, 99.9: 0.005303454, 99.99: 0.007718942, 100: 0.007718942,
    }  # fmt: skip
    # The stall in the middle has a row.
    assert operation.intervals[2].service is None
    assert "include those of 12 failed operations" in result.notes[0]
    assert "only result is counted" in result.notes[1]
    assert "nosqlbench-histostats,metric=NAME:FILE" in result.notes[1]
    assert not result.estimated_clock


@pytest.mark.parametrize(
    ("metric", "completed", "is_response"),
    [("cycles.responsetime", 36_799, True), ("cycles_servicetime", 36_799, False), ("result-success", 36_787, False)],
)
def test_the_user_can_choose_the_metric(metric: str, completed: int, is_response: bool) -> None:
    (operation,) = result_of(CAPTURE, metric=metric).operations
    assert operation.summary is not None
    assert operation.summary.completed == completed
    assert (operation.intervals[0].response is not None) == is_response


def test_activities_are_operations_and_rows_after_their_end_are_left_out(tmp_path: Path) -> None:
    rows = [
        row("rampup.cycles", "0.0", 100), row("main.cycles", "0.0", 0),
        row("rampup.cycles", "1.0", 50), row("main.cycles", "1.0", 0),
        row("rampup.cycles", "2.0", 0), row("main.cycles", "2.0", 700),
        row("rampup.cycles", "3.0", 0), row("main.cycles", "3.0", 0),
    ]  # fmt: skip
    result = result_of_rows(tmp_path / "stats.csv", *rows)
    counts = {operation.name: [each.completed for each in operation.intervals] for operation in result.operations}
    # The last row of `main` is a stall: no other activity has operations then.
    assert counts == {"main": [700, 0], "rampup": [100, 50, 0]}


def test_operations_that_are_counted_as_successful_in_the_next_interval_did_not_fail(tmp_path: Path) -> None:
    counts = {"m.result": (100, 100, 100), "m.result-success": (97, 103, 98)}
    rows = [row(tag, f"{second}.0", series[second]) for second in range(3) for tag, series in counts.items()]
    (operation,) = result_of_rows(tmp_path / "stats.csv", *rows).operations
    assert [each.failed for each in operation.intervals] == [0, 0, 2]


def test_percentiles_that_contradict_the_maximum_are_not_imported(tmp_path: Path) -> None:
    # Of 498 values, the highest is the 99.99th percentile. Old versions wrote the 0.9999th.
    old = "Tag=diag1.cycles,0.501,0.499,498,1024,2047,2047,4095,4095,4095,4095,4095,4095,4095,4194303"
    result = result_of_rows(tmp_path / "stats.csv", old)
    ((interval,),) = [operation.intervals for operation in result.operations]
    assert interval.service is not None
    assert interval.service.stated_s == {0: 1.024e-6, 100: 0.004194303}
    assert any("contradict" in note for note in result.notes)


def test_numbers_of_java_labels_and_several_headers_are_read(tmp_path: Path) -> None:
    path = tmp_path / "stats.csv"
    text = HEADER + row('session,a="b,c".cycles_servicetime', "-5.0E-4", 10) + "\n"
    path.write_text(text + text.replace("1479089852.046", "1479089952.046"))
    (operation,) = result_of(path).operations
    assert [interval.begin_s for interval in operation.intervals] == pytest.approx(
        [1_479_089_852.0455, 1_479_089_952.0455]
    )


def test_metrics_that_are_not_known_must_be_chosen(tmp_path: Path) -> None:
    with pytest.raises(ClientFormatError, match=r"cannot tell which metric .* bind, tries"):
        result_of_rows(tmp_path / "stats.csv", row("a.bind"), row("a.tries"))
    (operation,) = result_of_rows(tmp_path / "stats.csv", row("here"), row("there", count=7), metric="there").operations
    assert operation.intervals[0].completed == 7
    with pytest.raises(ClientFormatError, match=r"probably measure the same operations .*nosqlbench-histostats,metric"):
        result_of_rows(tmp_path / "stats.csv", row("here"), row("there"))
    with pytest.raises(ClientFormatError, match="no metric 'elsewhere'"):
        result_of_rows(tmp_path / "stats.csv", row("here"), metric="elsewhere")
    (operation,) = result_of_rows(tmp_path / "stats.csv", row("here")).operations
    assert operation.name == "here"


def test_an_incomplete_last_row_is_ignored_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "stats.csv"
    path.write_text(HEADER + row("a.cycles") + "\n" + row("a.cycles", "1.0")[:-30])
    result = result_of(path)
    assert len(result.operations[0].intervals) == 1
    assert "incomplete" in result.notes[0]


@every(
    "damaged",
    [
        row("a.cycles").replace(",10,", ",-10,"),
        row("a.cycles").replace(",1.000,", ",-1.000,"),
        row("a.cycles").replace(",0.0,", ",NaN,"),
        row("a.cycles").replace(",0.0,", ",1e400,"),
        row("a.cycles", max=9_223_372_036_854_775_807),
        row("a.cycles") + ",5",
        "Tag=a.cycles",
    ],
)
def test_damaged_rows_are_an_error(tmp_path: Path, damaged: str) -> None:
    with pytest.raises(ClientFormatError, match="line 6"):
        result_of_rows(tmp_path / "stats.csv", row("a.cycles"), damaged)
