"""Each format is recognised by its content, and its results have the counts and times that the tool states."""

import json
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram

from collector.load_results import result_file
from collector.load_results.client_format import ClientFormatError, CommandTimes
from collector.load_results.client_result import ClientResult
from collector.load_results.format_registry import client_formats, read_as, recognised_format

CAPTURES = Path(__file__).parents[2] / "captures" / "clients"
LATTE = CAPTURES / "latte-read-3node.json"
TIMES = CommandTimes(1_700_000_000.0, 1_700_000_100.0)


def result_of(path: Path) -> ClientResult:
    return read_as(recognised_format(path), path, TIMES)


def test_a_latte_report_has_the_cycles_percentiles_and_times_that_latte_states() -> None:
    stated = json.loads(LATTE.read_text())
    result = result_of(LATTE)
    (operation,) = result.operations
    assert (result.format, operation.name, len(operation.intervals)) == ("latte", "run", len(stated["result"]["log"]))
    assert operation.summary is not None
    assert operation.total is not None
    assert operation.summary.completed == operation.total.completed == stated["result"]["cycle_count"] == 59_482
    assert operation.summary.service == operation.total.service
    percentages = stated["percentiles"][1:]
    assert operation.summary.service is not None
    values_s = operation.summary.service.percentiles_s(percentages)
    stated_ms = [percentile["value"] for percentile in stated["result"]["cycle_latency"]["percentiles"]][1:]
    assert [value_s * 1000 for value_s in values_s if value_s is not None] == pytest.approx(stated_ms)
    begin_s, end_s = result.span_s or (0.0, 0.0)
    assert begin_s == pytest.approx(1_795_245_174.442, abs=0.001)
    assert end_s - begin_s == pytest.approx(60.0, abs=0.3)
    assert result.has_only_service_time


def test_errors_in_a_latte_report_are_not_counted_as_completed(tmp_path: Path) -> None:
    content = json.loads(LATTE.read_text())
    for sample in content["result"]["log"][:2]:
        sample["req_error_count"] = 3
    content["result"]["cycle_latency_by_fn"]["other"] = content["result"]["cycle_latency"]
    path = tmp_path / "latte.json"
    path.write_text(json.dumps(content))
    result = result_of(path)
    (operation,) = result.operations
    assert operation.name == ""
    assert operation.summary is not None
    assert (operation.summary.completed, operation.summary.failed) == (59_482 - 6, 6)
    assert "failed requests" in result.notes[0]


def test_a_latte_report_without_samples_is_a_total(tmp_path: Path) -> None:
    content = json.loads(LATTE.read_text())
    content["result"]["log"] = []
    path = tmp_path / "latte.json"
    path.write_text(json.dumps(content))
    result = result_of(path)
    (operation,) = result.operations
    assert operation.intervals == ()
    assert operation.summary == operation.total
    assert "--drop-sampling-log" in result.notes[0]


def hdr_log(path: Path, base_s: float, start_s: float) -> None:
    """Write a log of two seconds with the histograms that cassandra-stress writes; its timestamps begin at `base_s`."""
    lines = ["#[Histogram log format version 1.3]", f"#[StartTime: {start_s:.3f} (seconds since epoch), Wed Nov 06]"]
    if base_s:
        lines.insert(1, f"#[BaseTime: {base_s:.3f} (seconds since epoch)]")
    lines.append('"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"')
    for second in range(2):
        for tag, value in (("READ-st", 1_000_000), ("READ-rt", 5_000_000), ("READ-wt", 4_000_000), ("WRITE-st", 7)):
            histogram = HdrHistogram(1, 3_600_000_000_000, 3)
            for _ in range(10 * (second + 1)):
                histogram.record_value(value)
            text = histogram.encode().decode()
            lines.append(f"Tag={tag},{start_s - base_s + second:.3f},1.000,{value / 1e6:.3f},{text}")
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("base_s", [1_730_903_661.0, 0.0])
def test_an_hdr_log_has_the_operations_of_its_tags_and_separates_response_from_service_time(
    tmp_path: Path, base_s: float
) -> None:
    path = tmp_path / "stress.hdr"
    hdr_log(path, base_s, 1_730_903_661.0)
    result = result_of(path)
    assert [operation.name for operation in result.operations] == ["read", "write"]
    read, write = result.operations
    assert [interval.completed for interval in read.intervals] == [10, 20]
    assert [interval.begin_s for interval in read.intervals] == pytest.approx([1_730_903_661.0, 1_730_903_662.0])
    assert read.intervals[0].response is not None
    assert read.intervals[0].service is not None
    assert read.intervals[0].response.percentile_s(99) == pytest.approx(0.005, rel=0.001)
    assert read.intervals[0].service.percentile_s(99) == pytest.approx(0.001, rel=0.001)
    assert write.intervals[0].response is None
    assert not result.has_only_service_time


def test_an_incomplete_last_line_of_an_hdr_log_is_ignored_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "stress.hdr"
    hdr_log(path, 0.0, 1_730_903_661.0)
    path.write_text(path.read_text()[:-20])
    result = result_of(path)
    assert [len(operation.intervals) for operation in result.operations] == [2, 1]
    assert "incomplete" in result.notes[0]
    path.write_text(path.read_text() + "\nTag=READ-st,1,1,1,HISTF\n")
    with pytest.raises(ClientFormatError, match="line"):
        result_of(path)


@pytest.mark.parametrize(("content", "reason"), [("", "empty"), (" \n", "empty"), ("hello", "unknown format")])
def test_other_files_are_not_recognised(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "file"
    path.write_text(content)
    with pytest.raises(ClientFormatError, match=reason):
        recognised_format(path)


def test_formats_have_distinct_names() -> None:
    assert {"latte", "hdr-log"} <= client_formats().keys()
    assert all(name == form.name for name, form in client_formats().items())


def test_a_result_is_the_same_after_it_is_written_and_read(tmp_path: Path) -> None:
    result = result_of(LATTE).shifted(0.25)
    path = tmp_path / "result.json"
    result_file.write_result(path, result)
    assert result_file.content_of(result_file.read_result(path)) == result_file.content_of(result)
