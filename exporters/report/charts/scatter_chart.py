"""Latency against throughput: one dot per interval."""

from exporters.charts import axes
from exporters.charts.plot_colours import PERCENTILE_STYLES
from exporters.charts.plot_columns import Values, present, series
from exporters.charts.plot_data import CLUSTER, Run, in_warm_up, missing
from exporters.report.charts.chart import WIDTH, Chart, Panel, Points, Tic
from exporters.report.charts.svg_shapes import dots
from exporters.report.charts.time_chart import MS
from exporters.rows.operation_columns import TOTAL_RATE
from exporters.texts import clock_text, value_text

HEIGHT_PX = 200
_QUANTILES = ("p95", "p99")


def scatter_chart(run: Run) -> Chart | None:
    """Return p95 and p99 of reads and of writes against the operations per second of the cluster.

    Intervals outside measured phases, and those in which a node is missing, are left out.
    """
    incomplete = missing(run).incomplete
    rates = series(run, CLUSTER, TOTAL_RATE)
    kept = sorted(
        (rate, index)
        for index, (rate, time_s) in enumerate(zip(rates, run.times, strict=True))
        if rate is not None and not incomplete[index] and not in_warm_up(run, time_s)
    )
    lines: dict[str, Values] = {}
    for word in ("read", "write"):
        for q in _QUANTILES:
            values = series(run, CLUSTER, f"{word}_{q}_ms")
            lines[f"{word} {q}"] = [values[index] for _, index in kept]
    lines = {name: values for name, values in lines.items() if present(values)}
    if not lines:
        return None
    x_scale = axes.linear([rate for rate, _ in kept], WIDTH / 5)
    width = x_scale.high - x_scale.low
    x = [WIDTH * (rate - x_scale.low) / width for rate, _ in kept]
    labels = [f"{value_text(rate)} operations/s at {clock_text(run.times[index], run.zone_s)}" for rate, index in kept]
    return Chart(
        "scatter",
        "Latency against throughput",
        f"operations/s of the cluster; a dot covers {run.interval_s:g} s",
        [panel for word in ("read", "write") for panel in _panels(word, lines, x)],
        [
            Tic(WIDTH * (tic - x_scale.low) / width, axes.short(tic), index % 2 == 1)
            for index, tic in enumerate(x_scale.tics)
        ],
        [Points(x, lines, dict.fromkeys(lines, MS), labels)],
        [
            f"{name}: {value_text(min(present(values)))} to {value_text(max(present(values)), MS)} at"
            f" {value_text(kept[0][0])} to {value_text(kept[-1][0])} operations/s"
            for name, values in lines.items()
        ],
    )


def _panels(word: str, lines: dict[str, Values], x: list[float]) -> list[Panel]:
    """Return the panel of an operation; [] if its latencies are unknown."""
    styles = {f"{word} {q}": PERCENTILE_STYLES[q][0] for q in _QUANTILES}
    drawn = {name: style for name, style in styles.items() if name in lines}
    if not drawn:
        return []
    scale = axes.logarithmic([value for name in drawn for value in present(lines[name])], HEIGHT_PX)
    content = "".join(dots(style, x, lines[name], scale, HEIGHT_PX) for name, style in drawn.items())
    return [Panel(f"{word} latency, ms", scale, HEIGHT_PX, drawn, content)]
