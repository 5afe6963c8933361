"""Latency by percentile, over all measured phases; the tail is stretched, as in HdrHistogram's plots."""

from collections.abc import Mapping, Sequence
from math import log10

from collector.load_results.client_result import Latency
from collector.model.histogram import Buckets
from collector.node.metrics.requests import OPERATIONS
from exporters.charts import axes
from exporters.charts.plot_colours import OPERATION_STYLES
from exporters.charts.plot_columns import Values, curves, present, total_buckets
from exporters.report.charts.chart import WIDTH, Chart, Panel, Points, Tic
from exporters.report.charts.svg_shapes import line
from exporters.report.charts.time_chart import MS
from exporters.report.report_data import ReportData

HEIGHT_PX = 260
_TITLES = {operation.word: operation.title for operation in OPERATIONS}
_STYLES = {operation.title: OPERATION_STYLES[operation.word][0] for operation in OPERATIONS}
_MS_PER_S = 1000.0
_DEFAULT_PERCENTAGES = (50.0, 90.0, 99.0, 99.9, 99.99)
_TIC_PERCENTAGES = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999, 99.99999, 99.999999)


def percentile_chart(data: ReportData, client: Latency | None, client_kind: str) -> Chart | None:
    """Return the chart; `client` has the latencies of all operations of the clients, if they can be combined."""
    totals: dict[str, Buckets | None] = {word: total_buckets(data.merged, word) for word in _TITLES}
    columns = curves(totals)
    percentages = present(columns["percentile"])
    lines: dict[str, Values] = {title: columns[f"{word}_ms"] for word, title in _TITLES.items()}
    if client is not None and client.counts:
        name = f"client ({client_kind} time)"
        percentages = percentages or list(_DEFAULT_PERCENTAGES)
        lines = {name: _client_values(client, percentages), **(lines if columns["percentile"] else {})}
    lines = {name: values for name, values in lines.items() if present(values)}
    if not lines:
        return None
    last_nines = _nines(percentages[-1])
    x = [WIDTH * _nines(percentage) / last_nines for percentage in percentages]
    scale = axes.logarithmic([value for values in lines.values() for value in present(values)], HEIGHT_PX)
    styles = {name: _STYLES.get(name, "client") for name in lines}
    content = "".join(line(styles[name], x, values, scale, HEIGHT_PX) for name, values in lines.items())
    return Chart(
        "percentiles",
        "Latency by percentile",
        "percentile, % of operations",
        [Panel("latency, ms", scale, HEIGHT_PX, styles, content)],
        [
            Tic(WIDTH * _nines(percentage) / last_nines, f"{percentage:.8g}%", index % 2 == 1)
            for index, percentage in enumerate(_TIC_PERCENTAGES)
            if _nines(percentage) <= last_nines
        ],
        [
            Points(
                x, lines, dict.fromkeys(lines, MS), [f"{percentage:.6g}% of operations" for percentage in percentages]
            )
        ],
        _texts(totals, client, lines),
    )


def _nines(percentage: float) -> float:
    """Return the position on the axis: 1 for 90%, 2 for 99%, and so on."""
    return -log10(1 - percentage / 100)


def _client_values(client: Latency, percentages: Sequence[float]) -> list[float | None]:
    """Return the client's percentiles; None for those that are too high for the number of operations."""
    number = sum(client.counts.values())
    values = client.percentiles_s(percentages)
    return [
        value_s * _MS_PER_S if value_s is not None and 1 - percentage / 100 >= 0.999 / number else None
        for percentage, value_s in zip(percentages, values, strict=True)
    ]


def _texts(totals: Mapping[str, Buckets | None], client: Latency | None, lines: Mapping[str, Values]) -> list[str]:
    counts = {_TITLES[word]: buckets.total for word, buckets in totals.items() if buckets}
    texts = [f"{name}: {counts[name]:,.0f} operations in complete intervals" for name in lines if name in counts]
    if client is not None and client.counts:
        texts.append(f"client: {sum(client.counts.values()):,} operations")
    return texts
