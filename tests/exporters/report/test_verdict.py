"""The verdict states the cluster's throughput by operation, and the errors on the server."""

from collections.abc import Mapping

import pytest

from collector.runs.run import Run as RecordedRun
from exporters.charts.plot_data import PlotData
from exporters.report.report_blocks import Paragraph, ReportData
from exporters.report.verdict import verdict
from exporters.results.comparison.run_settings import RunSettings
from exporters.results.summary.phase_summary import PhaseSummary
from exporters.rows.columns import Cell

ERRORS = {f"{word}_{name}": 0 for word in ("read", "write") for name in ("timeouts", "unavailables", "failures")}
USUAL = {"reads_per_s": 84.0, "read_p99_ms": 1.5, "writes_per_s": 166.0, **ERRORS}


def texts_of(values: Mapping[str, Cell]) -> str:
    settings = RunSettings(RecordedRun("run", 0.0, 60.0, "0.1.0"), {})
    data = ReportData(settings, PlotData("run", 1.0, [], {}), "", [PhaseSummary("main", 0.0, 60.0, values, {})])
    return " ".join(block.text for block in verdict(data) if isinstance(block, Paragraph))


@pytest.mark.parametrize("others", [{}, {"range_reads": 0, "range_reads_per_s": 0.0, "cas_writes": None}])
def test_reads_and_writes_are_the_throughput_if_there_is_nothing_else(others: Mapping[str, Cell]) -> None:
    text = texts_of({**USUAL, **others, "operations_per_s": 250.0})
    assert "The cluster served 84 reads/s (p99 1.50 ms) and 166 writes/s." in text
    assert "No timeouts, unavailables or failures on the server." in text


def test_all_operations_that_occur_are_stated_with_their_total() -> None:
    ranges = {"range_reads": 9960, "range_reads_per_s": 166.0, "range_read_p99_ms": 2.0, "range_read_timeouts": 3}
    conditional = {"cas_writes": 4980, "cas_writes_per_s": 83.0, "cas_write_p99_ms": 7.0}
    text = texts_of({**USUAL, **ranges, **conditional, "operations_per_s": 416.0})
    assert (
        "The cluster served 416 operations/s: 84 reads/s (p99 1.50 ms), 166 writes/s, 166 range reads/s (p99 2.00 ms)"
        " and 83 conditional writes/s (p99 7.00 ms)." in text
    )
    assert "Errors on the server: 3 range read timeouts." in text
