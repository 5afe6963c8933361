"""A small chart for each node: throughput and p99, on the same scales for all nodes."""

from exporters.charts.plot_columns import present
from exporters.charts.plot_data import Run, gaps_of
from exporters.report.charts.chart import Chart
from exporters.report.charts.time_chart import (
    Annotations,
    TimeLine,
    TimePanel,
    node_lines,
    other_lines,
    scale_of,
    slowest_line,
    time_chart,
)
from exporters.texts import shown

HEIGHT_PX = 80
MAX_CHARTS = 40
"""With more nodes, only those with the highest p99 get a chart."""


def node_charts(run: Run) -> list[Chart]:
    """Return a chart for each node that has values, but at most MAX_CHARTS."""
    rates, tails = dict[str, list[TimeLine]](), dict[str, list[TimeLine]]()
    for node in run.nodes:
        usual, (other_rates, other_tails) = node_lines(run, node), other_lines(run, node)
        rates[node], tails[node] = [*usual[:2], *other_rates], [*usual[2:], *other_tails]
    kept = sorted(tails, key=lambda node: _highest(tails[node]), reverse=True)[:MAX_CHARTS]
    if not kept:
        return []
    slowest = {node: slowest_line(run, node) for node in kept}
    rate_scale = scale_of([line for node in kept for line in rates[node]], log=False, height=HEIGHT_PX)
    tail_scale = scale_of([line for node in kept for line in (slowest[node], *tails[node])], log=True, height=HEIGHT_PX)
    charts = (
        time_chart(
            f"node-{number}",
            shown(node),
            run,
            [
                TimePanel("operations/s", rates[node], scale=rate_scale, height=HEIGHT_PX),
                TimePanel("p99, ms", [slowest[node], *tails[node]], log=True, scale=tail_scale, height=HEIGHT_PX),
            ],
            Annotations(gaps_of(run, node), [mark for mark in run.marks if mark.node == node]),
        )
        for number, node in enumerate(run.nodes, 1)
        if node in kept
    )
    return [chart for chart in charts if chart]


def _highest(lines: list[TimeLine]) -> float:
    return max((value for line in lines for value in present(line.values)), default=0.0)
