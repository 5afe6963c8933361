"""The throughput's range covers complete intervals of the measured phases, and its average is that of their time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.load_results.client_result import ClientInterval, ClientResult, Operation
from collector.runs.run import Run as RecordedRun
from exporters.charts.plot_data import CLUSTER, PlotData, Row, missing
from exporters.report.chart_sections import throughput_table
from exporters.report.report import report_of
from exporters.report.report_blocks import Block, Paragraph, ReportData, Table
from exporters.results.comparison.run_settings import RunSettings
from exporters.results.summary.client_values import client_values
from exporters.results.summary.phase_summary import PhaseSummary

ABSENT = ["-"] * 6
MISSING = None
Rates = Sequence[float | None]


def node_row(rate: float | None, length_s: float) -> Row | None:
    return None if rate is MISSING else {"reads_per_s": rate, "writes_per_s": 0.0, "interval_s": length_s}


def merged(*nodes: Rates, interval_s: float = 1.0, lengths_s: Mapping[int, float] | None = None) -> PlotData:
    """Return a run that begins at 0 s, in which nodes have these rates of reads; MISSING where a node is missing.

    `lengths_s` has the time that the cluster's rates cover in an interval, if it is not `interval_s`.
    """
    times = [(index + 1) * interval_s for index in range(len(nodes[0]))]
    cluster: list[Row | None] = []
    for index, rates in enumerate(zip(*nodes, strict=True)):
        known = [rate for rate in rates if rate is not None]
        length_s = (lengths_s or {}).get(index, interval_s)
        row: Row = {"nodes": len(known), "reads_per_s": sum(known), "writes_per_s": 0.0, "interval_s": length_s}
        cluster.append(row if known else None)
    lengths = [(lengths_s or {}).get(index, interval_s) for index in range(len(times))]
    rows = {f"n{number}": [*map(node_row, rates, lengths)] for number, rates in enumerate(nodes)}
    return PlotData("run", interval_s, times, {CLUSTER: cluster, **rows})


def data_of(run: PlotData, *results: ClientResult, measured: tuple[float, float] = (0.0, 1000.0)) -> ReportData:
    """Return the data of a report with one measured phase."""
    settings = RunSettings(RecordedRun("run", 0.0, 1000.0, "0.1.0"), {})
    return ReportData(settings, run, "one clock", [PhaseSummary("main", *measured, {}, {})], results=results)


def blocks_of(data: ReportData) -> list[Block]:
    return throughput_table(data, missing(data.merged).incomplete)


def rows_of(data: ReportData) -> dict[str, list[str]]:
    """Return the rows of the table, keyed by name."""
    table = next(block for block in blocks_of(data) if isinstance(block, Table))
    return {name: cells for name, *cells in table.rows}


def client(begin_s: float, *intervals: tuple[float, int]) -> ClientResult:
    """Return a result with consecutive intervals, given their lengths and their numbers of operations."""
    ends_s = [begin_s + sum(length_s for length_s, _ in intervals[: number + 1]) for number in range(len(intervals))]
    parts = (
        ClientInterval(end_s - length_s, end_s, completed)
        for end_s, (length_s, completed) in zip(ends_s, intervals, strict=True)
    )
    return ClientResult("csv", "tool", "file", (Operation("get", tuple(parts)),))


def test_the_table_has_the_clients_above_the_operations_of_the_server() -> None:
    data = data_of(merged([30, 10, 50]), client(0, (1, 20), (1, 60), (1, 40)))
    (table,) = blocks_of(data)
    assert table == Table(
        "Throughput per interval of 1 s",
        ("", "time", "average", "lowest", "at", "highest", "at"),
        [
            ["client operations/s", "3 s", "40", "20", "00:00:01", "60", "00:00:02"],
            ["server reads/s", "3 s", "30", "10", "00:00:02", "50", "00:00:03"],
        ],
    )


def test_times_are_local_and_the_first_of_equal_values_counts() -> None:
    run = replace(merged([10, 10]), zone_s=3600)
    assert rows_of(data_of(run))["server reads/s"][2:] == ["10", "01:00:01", "10", "01:00:01"]


def test_only_intervals_completely_inside_the_measured_phases_count() -> None:
    run = merged([900, 1, 30, 10, 2, 800])
    results = client(0, (1, 900), (1, 1), (1, 30), (1, 10), (1, 2), (1, 800))
    rows = rows_of(data_of(run, results, measured=(1.5, 4.5)))
    assert rows["server reads/s"] == ["2 s", "20", "10", "00:00:04", "30", "00:00:03"]
    assert rows["client operations/s"] == rows["server reads/s"]


def test_all_measured_phases_count_together() -> None:
    data = data_of(merged([90, 10, 20, 30]))
    total = PhaseSummary("total", 1.0, 4.0, {}, {})
    phases = [replace(total, name="a", end_s=2.5), replace(total, name="b", begin_s=2.5), total]
    assert rows_of(replace(data, phases=phases))["server reads/s"][:3] == ["3 s", "20", "10"]


def test_intervals_with_missing_nodes_are_left_out_and_counted() -> None:
    run = merged([20, 20, 20, 40], [20, MISSING, 20, 40])
    table, paragraph = blocks_of(data_of(run, client(0, (1, 50), (1, 5), (1, 50), (1, 50))))
    assert isinstance(table, Table)
    clients, reads = table.rows
    assert reads == ["server reads/s", "3 s", "53", "40", "00:00:01", "80", "00:00:04"]
    # The clients' operations are complete.
    assert clients[1:4] == ["4 s", "39", "5"]
    text = "Server: 1 of 4 intervals not included, because not all nodes have values for them."
    assert paragraph == Paragraph(text)


def test_missing_nodes_outside_the_measured_phases_are_not_stated() -> None:
    run = merged([20, 20, 20, 40], [MISSING, 20, 20, MISSING])
    assert len(blocks_of(data_of(run, measured=(1.0, 3.0)))) == 1


def test_the_interval_after_a_gap_is_left_out_because_its_rates_cover_the_gap() -> None:
    run = merged([20, 20, 20, 40], [20, MISSING, 1, 40], lengths_s={2: 2.0})
    table, paragraph = blocks_of(data_of(run))
    assert isinstance(table, Table)
    assert table.rows == [["server reads/s", "2 s", "60", "40", "00:00:01", "80", "00:00:04"]]
    assert isinstance(paragraph, Paragraph)
    assert paragraph.text.startswith("Server: 2 of 4 intervals not included")


def test_reads_are_absent_if_a_node_is_always_missing() -> None:
    run = merged([20, 20], [MISSING, MISSING])
    table, paragraph = blocks_of(data_of(run))
    assert isinstance(table, Table)
    assert table.rows == [["server reads/s", *ABSENT]]
    assert isinstance(paragraph, Paragraph)
    assert paragraph.text.startswith("Server: 2 of 2 intervals not included")


def test_the_average_of_the_server_is_that_of_the_covered_time() -> None:
    run = merged([100, 10], interval_s=5.0, lengths_s={0: 4.0, 1: 6.0})
    assert rows_of(data_of(run))["server reads/s"][:2] == ["10 s", "46"]


def test_without_client_results_there_is_no_client_row() -> None:
    assert list(rows_of(data_of(merged([10, 20])))) == ["server reads/s"]


def test_without_reads_and_writes_there_is_only_the_client_row() -> None:
    assert list(rows_of(data_of(merged([0, 0]), client(0, (1, 5), (1, 7))))) == ["client operations/s"]


def test_an_interval_without_completed_operations_is_the_lowest() -> None:
    rows = rows_of(data_of(merged([10, 0, 20]), client(0, (1, 5), (1, 0), (1, 7))))
    assert [cells[2:4] for cells in rows.values()] == [["0", "00:00:02"]] * 2


def test_a_client_result_without_intervals_is_absent() -> None:
    total = ClientResult("wrk", "wrk", "file", (Operation("", (), ClientInterval(0.0, 3.0, 300)),))
    assert rows_of(data_of(merged([10, 20, 30]), total))["client operations/s"] == ABSENT


def test_the_average_of_unequal_client_intervals_is_that_of_their_time() -> None:
    result = client(0, (1, 100), (4, 40), (2, 100))
    rows = rows_of(data_of(merged([10] * 7), result))
    assert rows["client operations/s (intervals of 1 to 4 s)"] == ["7 s", "34", "10", "00:00:05", "100", "00:00:01"]


def test_client_intervals_that_are_longer_than_those_of_the_server_are_stated() -> None:
    rows = rows_of(data_of(merged([10] * 20), client(0, (10, 100), (10.01, 200))))
    assert rows["client operations/s (intervals of 10 s)"][:3] == ["20 s", "15", "10"]


def test_client_intervals_are_combined_to_those_of_the_server_and_a_shorter_rest_is_left_out() -> None:
    result = client(0, *[(1, 10)] * 5, *[(1, 20)] * 5, (1, 0), (1, 0))
    rows = rows_of(data_of(merged([10] * 3, interval_s=5.0), result))
    assert rows["client operations/s"] == ["10 s", "15", "10", "00:00:05", "20", "00:00:10"]


def test_a_gap_in_a_client_result_is_not_a_low_value() -> None:
    first, second = (client(begin_s, (1, 10), (1, 10)).operations[0].intervals for begin_s in (0, 5))
    result = ClientResult("csv", "tool", "file", (Operation("get", first + second),))
    assert rows_of(data_of(merged([10] * 7), result))["client operations/s"][:3] == ["4 s", "10", "10"]


@given(st.lists(st.tuples(st.sampled_from([1.0, 1.5, 4.0]), st.integers(0, 10**6)), min_size=1, max_size=20))
def test_the_average_of_the_clients_is_that_of_the_phase_table(intervals: list[tuple[float, int]]) -> None:
    result = client(10, *intervals)
    (cells,) = rows_of(data_of(merged([0]), result)).values()
    average = client_values([result], 0.0, 1000.0)["client_ops_per_s"]
    assert isinstance(average, int | float)
    shown = [float(cell.replace(",", "")) for cell in (cells[2], cells[1], cells[4])]
    assert shown[1] == pytest.approx(average, abs=1)
    assert shown == sorted(shown)


def test_without_a_measured_interval_there_is_no_table() -> None:
    data = data_of(merged([10, 20]), client(0, (1, 5), (1, 7)))
    assert blocks_of(replace(data, phases=[])) == []
    assert blocks_of(replace(data, phases=[PhaseSummary("main", 0.5, 1.4, {}, {})])) == []


def test_the_table_follows_the_chart() -> None:
    report = report_of(data_of(merged([10, 20])))
    (section,) = (section for section in report.sections if section.title == "Over time")
    assert [type(block).__name__ for block in section.blocks] == ["Chart", "Table"]


def test_the_time_is_that_which_has_passed_if_the_nodes_intervals_differ() -> None:
    run = merged([30.0] * 100, [10.0] * 100)
    for number, node in enumerate(run.nodes):
        for index, row in enumerate(run.rows[node]):
            assert isinstance(row, dict)
            row["interval_s"] = 1.2 if (index + number) % 2 else 0.8
    for row in run.rows[CLUSTER]:
        assert isinstance(row, dict)
        row["interval_s"] = 1.2
    assert rows_of(data_of(run))["server reads/s"][:2] == ["100 s", "40"]


def test_other_operations_have_rows_and_a_total_if_they_occur() -> None:
    run = merged([10.0, 30.0])
    cluster = [{**row, "range_reads_per_s": 5.0, "operations_per_s": 25.0} for row in run.rows[CLUSTER] if row]
    run = replace(run, rows={**run.rows, CLUSTER: cluster})
    total = PhaseSummary("main", 0.0, 1000.0, {"range_reads": 10}, {})
    rows = rows_of(replace(data_of(run), phases=[total]))
    assert rows["server range reads/s"][:2] == ["2 s", "5"]
    assert rows["server operations/s"][:2] == ["2 s", "25"]
