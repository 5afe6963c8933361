"""Plots the latency against the rate, with the objective, the capacity and the knee."""

from collections.abc import Sequence
from functools import partial

from exporters.charts import axes
from exporters.charts.all_plots import Plot
from exporters.charts.gnuplot_page import Drawing, Page
from exporters.charts.gnuplot_panel import axis, legend, plot, scale_commands
from exporters.charts.plot_columns import Columns
from exporters.results.capacity.search import SearchResult
from exporters.results.capacity.step_verdict import rate_text
from exporters.rows.columns import Cell


def capacity_plots(result: SearchResult) -> Sequence[Plot]:
    """Return the plots of a search; none without steps that have a latency."""
    if not result.curve:
        return []
    return [Plot("capacity", "latency against rate", partial(draw, result=result))]


def draw(page: Page, result: SearchResult) -> Drawing:
    box = page.area()
    limits = [objective.limit for objective in result.objectives if objective.column == result.latency_column]
    latencies = [latency for _, latency in result.curve]
    scale = axes.logarithmic([*latencies, *limits], box.height)
    x_axis = axes.linear([rate for rate, _ in result.curve], box.width / 2.5)
    last = {step.step.rate: step for step in result.steps}
    shown = [last[rate] for rate, _ in result.curve]
    steps: Columns = {
        "rate": [step.step.rate for step in shown],
        "met_ms": [_latency(step.values.get(result.latency_column), step.verdict.is_met) for step in shown],
        "missed_ms": [_latency(step.values.get(result.latency_column), not step.verdict.is_met) for step in shown],
    }
    curve: Columns = {"rate": [rate for rate, _ in result.curve], "latency_ms": list(latencies)}
    commands = [
        *page.labels(_subtitle(result)),
        *page.margins(box),
        *scale_commands("x", x_axis),
        "set xlabel 'rate, operations/s' tc rgb ink",
        *axis(page, box, f"{result.latency_column.removesuffix('_ms')}, ms", scale),
        *legend(page, box),
        *(
            f"set arrow from graph 0, first {limit:.6g} to graph 1, first {limit:.6g} nohead lc rgb faint dt 2"
            for limit in limits
        ),
        *_band(result),
        *plot(
            [
                f"'{page.name}.curve.tsv' using 1:2 with lines lc rgb faint lw 1.3 notitle",
                f"{page.data} using 1:2 with points pt 7 ps 1.1*dot lc rgb tail title 'objectives met'",
                f"{page.data} using 1:3 with points pt 9 ps 1.1*dot lc rgb vermillion title 'not met'",
            ]
        ),
    ]
    return Drawing(commands, {"": steps, "curve": curve})


def _latency(cell: Cell, is_shown: bool) -> float | None:
    return float(cell) if is_shown and isinstance(cell, int | float) else None


def _band(result: SearchResult) -> list[str]:
    """Return the commands that shade the confidence interval, and mark the knee."""
    known, commands = result.bracket, []
    if known.low is not None and known.high is not None:
        commands.append(
            f"set object rectangle from first {known.low:.6g}, graph 0 to first {known.high:.6g}, graph 1 behind"
            " fc rgb faint fs transparent solid 0.2 noborder"
        )
    if result.knee is not None:
        commands.append(f"set arrow from first {result.knee:.6g}, graph 0 rto 0, graph 1 nohead lc rgb faint dt 3")
    return commands


def _subtitle(result: SearchResult) -> str:
    parts = ["dashed: objective"]
    if result.bracket.low is not None and result.bracket.high is not None:
        parts.append("shaded: 95% interval of the capacity")
    if result.knee is not None:
        parts.append(f"dotted: knee, {rate_text(result.knee)}/s")
    return "; ".join(parts)
