"""The intervals of an HdrHistogram log cover the whole run, including times in which nothing completed."""

from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram

from collector.load_results.client_format import ClientFormatError, CommandTimes, SourceFile
from collector.load_results.client_result import ClientResult
from collector.load_results.formats import hdr_log

BASE_S = 1_730_903_661.0
TIMES = CommandTimes(1_700_000_000.0, 1_700_000_010.0)


def written(path: Path, intervals: list[tuple[str, float]]) -> ClientResult:
    """Read a log of one-second intervals, given by tag and begin, with one operation of 1 ms in each."""
    header = f"#[BaseTime: {BASE_S:.3f} (seconds since epoch)]"
    return result_of(path, header, *(f"Tag={tag},{line_of(begin_s)}" for tag, begin_s in intervals))


def line_of(begin_s: float) -> str:
    """Return the line of a one-second interval with one operation of 1 ms."""
    histogram = HdrHistogram(1, 3_600_000_000_000, 3)
    histogram.record_value(1_000_000)
    return f"{begin_s:.3f},1.000,1.000,{histogram.encode().decode()}"


def result_of(path: Path, *lines: str) -> ClientResult:
    path.write_text("\n".join(lines) + "\n")
    return hdr_log.read(SourceFile("hdr-log", path, TIMES))


def begins_s(result: ClientResult) -> list[float]:
    """Return when the intervals with operations began."""
    return [interval.begin_s for interval in result.operations[0].intervals if interval.completed]


def test_time_without_operations_is_an_interval_without_operations(tmp_path: Path) -> None:
    intervals = [("READ-st", 0.0), ("READ-st", 1.0), ("WRITE-st", 1.001), ("READ-st", 4.0)]
    read, write = written(tmp_path / "stress.hdr", intervals).operations
    assert [(i.begin_s - BASE_S, i.end_s - BASE_S, i.completed) for i in read.intervals] == [
        (0.0, 1.0, 1),
        (1.0, 2.0, 1),
        (2.0, 4.0, 0),
        (4.0, 5.0, 1),
    ]
    assert read.intervals[2].service is None
    assert [interval.completed for interval in write.intervals] == [0, 1, 0]
    assert write.intervals[-1].end_s == read.intervals[-1].end_s


def test_times_far_apart_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ClientFormatError, match="days apart"):
        written(tmp_path / "stress.hdr", [("READ-st", 0.0), ("READ-st", 9e9)])


def test_relative_times_begin_at_the_start_of_their_own_log(tmp_path: Path) -> None:
    starts = [f"#[StartTime: {BASE_S + offset_s:.3f} (seconds since epoch)]" for offset_s in (0, 100)]
    result = result_of(tmp_path / "two.hdr", starts[0], line_of(0), line_of(1), starts[1], line_of(0), line_of(1))
    assert begins_s(result) == [BASE_S, BASE_S + 1, BASE_S + 100, BASE_S + 101]


def test_a_stated_base_applies_whether_it_precedes_or_follows_the_start(tmp_path: Path) -> None:
    start, base = f"#[StartTime: {BASE_S + 5:.3f} (s)]", f"#[BaseTime: {BASE_S:.3f} (s)]"
    for header in ((start, base), (base, start)):
        assert begins_s(result_of(tmp_path / "one.hdr", *header, line_of(5))) == [BASE_S + 5]


@pytest.mark.parametrize(
    ("time_s", "begin_s", "is_estimated"), [(BASE_S, BASE_S, False), (0.5, TIMES.begin_s + 0.5, True)]
)
def test_without_a_header_times_since_the_epoch_are_absolute(
    tmp_path: Path, time_s: float, begin_s: float, is_estimated: bool
) -> None:
    result = result_of(tmp_path / "plain.hdr", line_of(time_s), line_of(time_s + 1))
    assert begins_s(result) == pytest.approx([begin_s, begin_s + 1])
    assert result.estimated_clock == is_estimated
