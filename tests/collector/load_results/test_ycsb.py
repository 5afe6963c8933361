"""The captures are of YCSB's core 0.17.0 with a binding whose reads fail now and then, without a server."""

from datetime import datetime, timezone
from pathlib import Path

import pytest

from collector.load_results.client_format import ClientFormatError, CommandTimes
from collector.load_results.client_result import ClientResult, Operation
from collector.load_results.format_registry import read_as, recognised_format
from collector.load_results.result_checks import doubts, require_sound
from tests.every import every

CAPTURES = Path(__file__).parents[2] / "captures" / "clients"
STATUS, SERIES = CAPTURES / "ycsb-status.log", CAPTURES / "ycsb-timeseries.log"
TWO_KINDS, HISTOGRAM = CAPTURES / "ycsb-two-kinds.log", CAPTURES / "ycsb-histogram.log"
TIMES = CommandTimes(1_700_000_000.0, 1_700_000_100.0)
# What the status lines state about reads that succeeded.
COUNTS = [72, 473, 628, 626, 591, 543, 622, 3]
SUMMARY = """\
[OVERALL], RunTime(ms), 10000
[OVERALL], Throughput(ops/sec), 100.0
[READ], Operations, 990
[READ], AverageLatency(us), 1000.5
[READ], MinLatency(us), 500
[READ], MaxLatency(us), 30000
[READ], 95thPercentileLatency(us), 2000
[READ], 99thPercentileLatency(us), 3000
[READ], 99.9PercentileLatency(us), 4000
[READ], Return=OK, 990
[READ], Return=NOT_FOUND, 10
[READ-FAILED], Operations, 10
[READ-FAILED], AverageLatency(us), 10.0
[CLEANUP], Operations, 4
"""


def result_of(path: Path, times: CommandTimes = TIMES) -> ClientResult:
    result = read_as(recognised_format(path), path, times)
    require_sound(result)
    assert result.format == "ycsb"
    return result


def result_of_text(path: Path, text: str, times: CommandTimes = TIMES) -> ClientResult:
    path.write_text(text)
    return result_of(path, times)


def times_of(capture: Path, zone_h: float = 0.0) -> CommandTimes:
    """Return times of a command that ends 0.2 s after the last status line, which has a clock of that time zone."""
    lines = [line for line in capture.read_text().splitlines() if " sec: " in line]
    last = datetime.strptime(lines[-1][:19], "%Y-%m-%d %H:%M:%S").replace(tzinfo=timezone.utc)
    end_s = last.timestamp() + int(lines[-1][20:23]) / 1000 - 3600 * zone_h + 0.2
    return CommandTimes(end_s - 9, end_s)


def operation(result: ClientResult, name: str) -> Operation:
    return next(operation for operation in result.operations if operation.name == name)


def test_status_lines_are_intervals_with_both_kinds_of_latency() -> None:
    times = times_of(STATUS)
    result = result_of(STATUS, times)
    assert [operation.name for operation in result.operations] == ["read", "update"]
    reads = operation(result, "read")
    assert [interval.completed for interval in reads.intervals] == COUNTS
    assert sum(interval.failed for interval in reads.intervals) == 80
    assert reads.total is not None
    assert (reads.total.completed, reads.total.errors) == (3558, {"NOT_FOUND": 63, "ERROR": 17})
    first = reads.intervals[0]
    assert first.service is not None
    assert first.response is not None
    assert first.service.stated_s == {
        0: 0.002024,
        90: 0.010287,
        99: 0.023903,
        99.9: 0.025039,
        99.99: 0.025039,
        100: 0.025039,
    }
    assert first.response.stated_s[99.0] == 0.247039
    assert reads.total.response is not None
    assert reads.total.response.stated_s[95.0] == 0.228607
    assert not result.has_only_service_time
    assert doubts(result) == []


@every("zone_h", [0, 2, -7, 5.75, 14, -11])
def test_status_lines_have_the_time_of_day_whatever_the_time_zone_of_the_client(zone_h: float) -> None:
    times = times_of(STATUS, zone_h)
    result = result_of(STATUS, times)
    assert not result.estimated_clock
    begin_s, end_s = result.span_s or (0.0, 0.0)
    assert end_s == pytest.approx(times.end_s - 0.2, abs=0.001)
    # The first line is printed long after the run began, because the first use of a date is slow.
    assert end_s - begin_s == pytest.approx(6.007, abs=0.001)
    bounds = [(interval.begin_s, interval.end_s) for interval in operation(result, "read").intervals]
    assert bounds[0][1] - bounds[0][0] == pytest.approx(0.274, abs=0.001)
    assert [after[0] for after in bounds[1:]] == [before[1] for before in bounds[:-1]]


def test_a_log_from_another_day_is_placed_at_the_end_of_the_command_with_a_note() -> None:
    result = result_of(STATUS)
    assert result.estimated_clock
    assert (result.span_s or (0, 0))[1] == pytest.approx(TIMES.end_s)
    assert any("when the command did not run" in note for note in result.notes)


def test_without_status_lines_there_is_a_total_of_the_run_s_length(tmp_path: Path) -> None:
    result = result_of_text(tmp_path / "command.log", SUMMARY)
    (reads,) = result.operations
    assert reads.intervals == ()
    assert reads.total is not None
    assert (reads.total.completed, reads.total.errors) == (990, {"NOT_FOUND": 10})
    assert (reads.total.begin_s, reads.total.end_s) == (TIMES.end_s - 10, TIMES.end_s)
    assert reads.total.service is not None
    assert reads.total.service.stated_s == {0: 0.0005, 95: 0.002, 99: 0.003, 99.9: 0.004, 100: 0.03}
    assert result.estimated_clock
    assert (result.notes, doubts(result)) == ((), [])


def test_a_read_modify_write_is_a_read_and_an_update_and_repeated_lines_count_once() -> None:
    result = result_of(SERIES, times_of(SERIES))
    assert {operation.name: operation.summary.completed for operation in result.operations if operation.summary} == {
        "read": 3079,
        "update": 2299,
    }
    # YCSB states 5,001 operations in which each of 438 consists of two.
    assert doubts(result) == []
    assert not any("earlier run" in note for note in result.notes)
    assert any("438 read-modify-write operations" in note for note in result.notes)
    assert any("time series" in note for note in result.notes)
    assert operation(result, "read").intervals == ()


def test_the_order_in_which_the_two_streams_are_read_does_not_matter(tmp_path: Path) -> None:
    lines = SERIES.read_text().splitlines(keepends=True)
    status = [line for line in lines if " sec: " in line][::2]
    summary = [line for line in lines if line.startswith("[")]
    for text in ([*status, *status, *summary], [*status[:3], *status[:2], *status[3:], *status[2:], *summary]):
        result = result_of_text(tmp_path / "command.log", "".join(text), times_of(SERIES))
        assert result.operations == result_of(SERIES, times_of(SERIES)).operations
        assert not any("earlier run" in note for note in result.notes)
    lines = STATUS.read_text().splitlines(keepends=True)
    last = next(index for index, line in enumerate(lines) if line.startswith("[OVERALL]")) - 1
    assert " sec: " in lines[last]
    late = [*lines[:last], *lines[last + 1 : last + 9], lines[last], *lines[last + 9 :]]
    result = result_of_text(tmp_path / "command.log", "".join(late), times_of(STATUS))
    assert result.operations == result_of(STATUS, times_of(STATUS)).operations


def test_two_kinds_of_measurement_of_the_same_operations_count_once() -> None:
    result = result_of(TWO_KINDS, times_of(TWO_KINDS))
    assert [operation.name for operation in result.operations] == ["read", "update"]
    reads = operation(result, "read")
    assert reads.total is not None
    assert reads.total.service is not None
    assert [interval.completed for interval in reads.intervals] == [18, 569, 567, 1]
    assert (reads.total.completed, reads.total.service.stated_s[99.0]) == (1155, 0.006315)
    assert doubts(result) == []


def test_percentiles_below_the_resolution_are_unknown(tmp_path: Path) -> None:
    total = operation(result_of(HISTOGRAM), "read").total
    assert total is not None
    assert total.service is not None
    assert total.service.stated_s == {0: 0.002015, 95: 0.004, 99: 0.013, 100: 0.049786}
    text = HISTOGRAM.read_text().replace(
        "[READ], 95thPercentileLatency(us), 4000", "[READ], 95thPercentileLatency(us), 0"
    )
    result = result_of_text(tmp_path / "command.log", text)
    total = operation(result, "read").total
    assert total is not None
    assert total.service is not None
    assert 95.0 not in total.service.stated_s
    assert any("rounds percentiles down" in note for note in result.notes)


def test_a_killed_run_has_the_intervals_of_its_whole_lines(tmp_path: Path) -> None:
    text = STATUS.read_text()
    end = text.index("4 sec: ") + 120
    result = result_of_text(tmp_path / "command.log", text[:end], times_of(STATUS))
    reads = operation(result, "read")
    assert reads.total is None
    assert len(reads.intervals) == 4
    assert any("totals of the run are missing" in note for note in result.notes)
    assert any("middle of a line" in note for note in result.notes)


def test_a_stall_is_an_interval_without_operations(tmp_path: Path) -> None:
    block = "[READ: Count={}, Max=9, Min=1, Avg=5, 90=8, 99=9, 99.9=9, 99.99=9] "
    stall = "[READ: Count=0, Max=0, Min=9223372036854775807, Avg=NaN, 90=0, 99=0, 99.9=0, 99.99=0] "
    lines = [
        "2026-11-29 10:00:00:100 0 sec: 0 operations; est completion in 0 second  ",
        f"2026-11-29 10:00:10:050 10 sec: 1000 operations; 100 current ops/sec; {block.format(1000)}",
        f"2026-11-29 10:00:20:050 20 sec: 1000 operations; 0 current ops/sec; {stall}",
        f"2026-11-29 10:00:23:050 23 sec: 1300 operations; 100 current ops/sec; {block.format(300)}",
    ]
    (reads,) = result_of_text(tmp_path / "command.log", "\n".join([*lines, ""])).operations
    assert [interval.completed for interval in reads.intervals] == [0, 1000, 0, 300]
    lengths = [interval.end_s - interval.begin_s for interval in reads.intervals]
    assert lengths == pytest.approx([0.05, 9.95, 10.0, 3.0], abs=0.001)
    assert reads.intervals[2].service is None


def test_the_end_of_daylight_saving_time_during_a_run_does_not_matter(tmp_path: Path) -> None:
    line = "2026-10-25 {}:000 {} sec: {} operations; 10 current ops/sec; [READ AverageLatency(us)=90] \n"
    text = "".join(
        line.format(*values) for values in (("02:59:50", 5, 50), ("02:00:00", 15, 150), ("02:00:10", 25, 250))
    )
    (reads,) = result_of_text(tmp_path / "command.log", text).operations
    assert [interval.end_s - interval.begin_s for interval in reads.intervals] == pytest.approx([5, 10, 10])


def test_status_lines_without_counts_of_a_kind_give_the_intervals_of_the_only_kind(tmp_path: Path) -> None:
    status = "2026-11-29 10:00:0{0}:000 {0} sec: {1} operations; [INSERT AverageLatency(us)=90] \n"
    summary = "[OVERALL], RunTime(ms), 2000\n[OVERALL], Throughput(ops/sec), 100.0\n[INSERT], Operations, 200\n"
    text = status.format(1, 150) + status.format(2, 200) + summary + "[INSERT], Return=OK, 200\n"
    result = result_of_text(tmp_path / "command.log", text)
    (inserts,) = result.operations
    assert (inserts.name, [interval.completed for interval in inserts.intervals]) == ("insert", [150, 50])
    (unknown,) = result_of_text(tmp_path / "command.log", status.format(1, 150) + status.format(2, 200)).operations
    assert (unknown.name, [interval.completed for interval in unknown.intervals]) == ("", [150, 50])


def test_of_several_runs_the_last_one_counts(tmp_path: Path) -> None:
    text = STATUS.read_text() + SERIES.read_text() + STATUS.read_text()
    result = result_of_text(tmp_path / "command.log", text, times_of(STATUS))
    assert operation(result, "read").total == operation(result_of(STATUS, times_of(STATUS)), "read").total
    assert any("2 earlier runs" in note for note in result.notes)
    result = result_of_text(tmp_path / "command.log", SUMMARY.replace("990", "190") + SUMMARY)
    assert operation(result, "read").summary == operation(result_of_text(tmp_path / "log", SUMMARY), "read").summary


@pytest.mark.parametrize("words", [("ycsb", "run", "-p", "measurement.interval=intended"), ()])
def test_intended_intervals_are_response_times(tmp_path: Path, words: tuple[str, ...]) -> None:
    line = "" if words else "Command line: -t -p measurement.interval=intended\n"
    times = CommandTimes(TIMES.begin_s, TIMES.end_s, words)
    (reads,) = result_of_text(tmp_path / "command.log", line + SUMMARY, times).operations
    assert reads.total is not None
    assert reads.total.service is None
    assert reads.total.response is not None


def test_other_versions_units_and_locales(tmp_path: Path) -> None:
    old = (
        "[OVERALL],RunTime(ms), 10110.0\n[OVERALL],Throughput(ops/sec), 98.91\n"
        "[READ], Operations, 1000.0\n"
        "[READ], 50thPercentileLatency(ms), 0\n[READ], 95thPercentileLatency(ms), 3.0\n[READ], Return=0, 990\n"
        "[READ], Return=-1, 10\n[READ], 0, 900\n[READ], >1000, 0\n"
    )
    result = result_of_text(tmp_path / "command.log", old)
    (reads,) = result.operations
    assert reads.total is not None
    assert reads.total.service is not None
    assert (reads.total.completed, reads.total.errors, reads.total.service.stated_s) == (990, {"-1": 10}, {95: 0.003})
    assert any("include those of 10 failed operations" in note for note in result.notes)
    line = (
        "run 7: 2026-11-29 10:00:10:000 10 sec: 500 operations; 50,01 current ops/sec; est completion in 1 hour "
        "[READ: Count=500, Max=1710, Min=3, Avg=216,88, 50=5, 90=7, 99=1710, 99.9=1710, 99.99=1710] \n"
    )
    (reads,) = result_of_text(tmp_path / "command.log", line).operations
    assert reads.intervals[0].service is not None
    assert reads.intervals[0].service.stated_s[50.0] == 0.000005


def test_measurements_of_the_process_are_not_operations(tmp_path: Path) -> None:
    further = "".join(
        f"[{name}], Operations, 7\n" for name in ("THREAD_COUNT", "USED_MEM_MB", "GCS", "GCS_TIME", "VERIFY")
    )
    assert [operation.name for operation in result_of_text(tmp_path / "log", SUMMARY + further).operations] == ["read"]


def test_a_summary_that_contradicts_itself_has_a_note(tmp_path: Path) -> None:
    result = result_of_text(tmp_path / "log", SUMMARY.replace("Return=OK, 990", "Return=OK, 890"))
    assert any("measured 990 operations" in note for note in result.notes)
    assert any("states 1,000 operations" in note for note in doubts(result))


@every(
    ("old", "new"),
    [
        ("RunTime(ms), 10000", "RunTime(ms), -5"),
        ("RunTime(ms), 10000", "RunTime(ms), NaN"),
        ("Operations, 990", "Operations, -990"),
        ("Operations, 990", "Operations, Infinity"),
        ("95thPercentileLatency(us), 2000", "95thPercentileLatency(us), 9e18"),
        ("95thPercentileLatency(us), 2000", "95thPercentileLatency(us), fast"),
        ("[READ", "[CLEANUP"),
    ],
)
def test_impossible_values_are_an_error(tmp_path: Path, old: str, new: str) -> None:
    assert old in SUMMARY
    with pytest.raises(ClientFormatError, match=r"^[ -~]+$"):
        result_of_text(tmp_path / "log", SUMMARY.replace(old, new))
