"""A small chart for each node: throughput and p99, on the same scales for all nodes."""

from exporters.charts.data_files import present
from exporters.charts.missing_nodes import gaps_of
from exporters.charts.plot_data import Run
from exporters.report.charts.chart import Chart
from exporters.report.charts.time_chart import (
    MS,
    NAMES,
    Annotations,
    TimeLine,
    TimePanel,
    node_lines,
    scale_of,
    slowest_line,
    time_chart,
)
from exporters.texts import shown

HEIGHT_PX = 80
P99 = (NAMES["read_p99_ms"], NAMES["write_p99_ms"])
MAX_CHARTS = 40
"""With more nodes, only those with the highest p99 get a chart."""


def node_charts(run: Run) -> list[Chart]:
    """Return a chart for each node that has values, but at most MAX_CHARTS."""
    lines = {node: [*node_lines(run, node), slowest_line(run, node)] for node in run.nodes}
    kept = sorted(lines, key=lambda node: _highest_p99(lines[node]), reverse=True)[:MAX_CHARTS]
    all_lines = [line for node in kept for line in lines[node]]
    if not all_lines:
        return []
    rates = scale_of([line for line in all_lines if line.unit != MS], log=False, height=HEIGHT_PX)
    tails = scale_of([line for line in all_lines if line.unit == MS], log=True, height=HEIGHT_PX)
    charts = (
        time_chart(
            f"node-{number}",
            shown(node),
            run,
            [
                TimePanel("operations/s", lines[node][:2], scale=rates, height=HEIGHT_PX),
                TimePanel("p99, ms", [lines[node][-1], *lines[node][2:-1]], log=True, scale=tails, height=HEIGHT_PX),
            ],
            Annotations(gaps_of(run, node), [mark for mark in run.marks if mark.node == node]),
        )
        for number, node in enumerate(run.nodes, 1)
        if node in kept
    )
    return [chart for chart in charts if chart]


def _highest_p99(lines: list[TimeLine]) -> float:
    return max((value for line in lines if line.name in P99 for value in present(line.values)), default=0.0)
