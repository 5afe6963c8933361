"""A log of HdrHistogram has all the time of a run, also that in which nothing completed."""

from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram

from collector.clients.client_format import ClientFormatError, CommandTimes
from collector.clients.client_result import ClientResult
from collector.clients.formats import hdr_log

BASE_S = 1_730_903_661.0


def written(path: Path, intervals: list[tuple[str, float]]) -> ClientResult:
    """Read a log with an operation of 1 ms in each interval of a second, given its tag and begin."""
    histogram = HdrHistogram(1, 3_600_000_000_000, 3)
    histogram.record_value(1_000_000)
    text = histogram.encode().decode()
    lines = [f"#[BaseTime: {BASE_S:.3f} (seconds since epoch)]"]
    lines += [f"Tag={tag},{begin_s:.3f},1.000,1.000,{text}" for tag, begin_s in intervals]
    path.write_text("\n".join(lines) + "\n")
    return hdr_log.read(path, CommandTimes(0.0, 1.0))


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
