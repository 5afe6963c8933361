"""The sections with charts, the charts of latencies, and the events, which the charts over time mark.

Over time, the throughput and p99 of the client are above those of the cluster, and a table has the average, lowest and
highest throughput of the intervals in the measured phases.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, inf, log10
from operator import attrgetter
from statistics import fmean

from collector.load_results.client_result import ClientResult, Latency
from collector.load_results.result_checks import TOLERANCE
from collector.merge.coverage import NO_ANSWER
from collector.model.histogram import Buckets
from collector.node.metrics.requests import OPERATIONS, Operation
from collector.printable import count_text
from collector.runs.run import step_text
from exporters.charts import axes
from exporters.charts.axes import Scale, TimeAxis, time_axis
from exporters.charts.plot_data import (
    CLUSTER,
    Columns,
    Mark,
    PlotData,
    Values,
    cells,
    curves,
    in_warm_up,
    missing,
    present,
    series,
    total_buckets,
)
from exporters.charts.plot_style import OPERATION_STYLES, PERCENTILE_STYLES
from exporters.report.report_blocks import WIDTH, Block, Chart, ChartLine, Panel, Paragraph, ReportData, Table, Tic
from exporters.report.svg_chart import y_of
from exporters.report.time_charts import (
    MS,
    TimePanel,
    client_lines,
    node_charts,
    node_lines,
    other_lines,
    resource_panels,
    slowest_line,
    time_chart,
    time_spans,
    time_tics,
)
from exporters.results.summary.client_values import TOLERANCE_S, client_points, combined_latency, total_within
from exporters.results.summary.phase_summary import PhaseSummary, gap_text, occurring
from exporters.results.summary.summary_text import number_text
from exporters.rows.operation_columns import TOTAL_RATE
from exporters.texts import clock_text, shown, value_text

_PERCENTILES_PX = 260
_TITLES = {operation.word: operation.title for operation in OPERATIONS}
_STYLES = {operation.title: OPERATION_STYLES[operation.word][0] for operation in OPERATIONS}
_MS_PER_S = 1000.0
_DEFAULT_PERCENTAGES = (50.0, 90.0, 99.0, 99.9, 99.99)
_TIC_PERCENTAGES = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999, 99.99999, 99.999999)
_HEAT_MAP_PX = 220
LEVELS = 8
"""The number of colours; level 0 is the lowest count."""
_MAX_COLUMNS = 150
_SCATTER_PX = 200
_QUANTILES = ("p95", "p99")


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
    scale = axes.logarithmic([value for values in lines.values() for value in present(values)], _PERCENTILES_PX)
    drawn = [ChartLine(name, _STYLES.get(name, "client"), MS, x, values) for name, values in lines.items()]
    labels = [f"{percentage:.6g}% of operations" for percentage in percentages]
    return Chart(
        "percentiles",
        "Latency by percentile",
        "percentile, % of operations",
        [Panel("latency, ms", scale, _PERCENTILES_PX, drawn)],
        [
            Tic(WIDTH * _nines(percentage) / last_nines, f"{percentage:.8g}%", index % 2 == 1)
            for index, percentage in enumerate(_TIC_PERCENTAGES)
            if _nines(percentage) <= last_nines
        ],
        _percentile_texts(totals, client, lines),
        labels,
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


def _percentile_texts(
    totals: Mapping[str, Buckets | None], client: Latency | None, lines: Mapping[str, Values]
) -> list[str]:
    counts = {_TITLES[word]: buckets.total for word, buckets in totals.items() if buckets}
    texts = [f"{name}: {counts[name]:,.0f} operations in complete intervals" for name in lines if name in counts]
    if client is not None and client.counts:
        texts.append(f"client: {sum(client.counts.values()):,} operations")
    return texts


def latency_heat_map(run: PlotData, operation: Operation) -> Chart | None:
    """Return the heat map of an operation; None if its latencies are unknown."""
    word, title = operation.word, operation.title
    singular = title.removesuffix("s")
    size = max(1, ceil(len(run.times) / _MAX_COLUMNS))
    drawn = cells(run, word, size)
    counts = present(drawn["count"])
    if not counts:
        return None
    axis = time_axis(run, 0.0, WIDTH)
    scale = axes.logarithmic(present([*drawn["low_ms"], *drawn["high_ms"]]), _HEAT_MAP_PX)
    x = [*map(axis.px, run.times)]
    lines = [
        ChartLine(f"{singular} {q}", "", MS, x, series(run, CLUSTER, f"{word}_{q}_ms"))
        for q in ("p50", "p95", "p99", "max")
    ]
    low, high = min(counts), max(counts)
    content = _heat_map_content(drawn, axis, scale, high)
    colours = f"darkest: {value_text(low)}, brightest: {value_text(high)} {title} per bucket"
    return Chart(
        f"heat-{word}",
        f"{singular[0].upper()}{singular[1:]} latency over time",
        f"local time; a cell covers {size * run.interval_s:g} s",
        [Panel(f"{singular} latency, ms; {colours}", scale, _HEAT_MAP_PX, lines, content=content)],
        time_tics(axis),
        [f"{_measured_text(run, operation)}; {colours}, on a logarithmic scale"],
        (),
        time_spans(run, axis, missing(run).gaps),
        (),
        axis,
    )


def _measured_text(run: PlotData, operation: Operation) -> str:
    """Return the number of operations in the measured phases, and the range of their latencies."""
    measured = [
        None if in_warm_up(run, time_s) else buckets
        for time_s, buckets in zip(run.times, run.buckets[operation.word], strict=True)
    ]
    found = cells(replace(run, buckets={operation.word: measured}), operation.word, len(run.times))
    lows, highs, counts = (present(found[name]) for name in ("low_ms", "high_ms", "count"))
    if not counts:
        return f"{operation.title}: none in the measured phases"
    return (
        f"{operation.title}: {sum(counts):,.0f} in buckets from {value_text(min(lows))} to {value_text(max(highs))} ms"
    )


def _heat_map_content(columns: Columns, axis: TimeAxis, scale: Scale, highest: float) -> str:
    """Return one path per level; the coordinates are integers, so that no background is visible between cells."""
    paths: defaultdict[int, list[str]] = defaultdict(list)
    for begin_s, end_s, low, high, count in zip(*(present(values) for values in columns.values()), strict=True):
        left, right = round(axis.px(begin_s)), round(axis.px(end_s))
        top, bottom = (round(y_of(scale, value, _HEAT_MAP_PX) or 0) for value in (high, low))
        level = _level(count, highest)
        paths[level].append(f"M{left} {top}h{right - left}v{max(bottom - top, 1)}H{left}")
    drawn_paths = {level: "".join(paths[level]) for level in sorted(paths)}
    return "".join(f'<path class="cell c{level}" d="{drawn}"/>' for level, drawn in drawn_paths.items())


def _level(count: float, highest: float) -> int:
    """Return the level of a count on a logarithmic scale from 1 to the highest count."""
    if count <= 1 or highest <= 1:
        return 0
    return min(int(LEVELS * log10(count) / log10(highest)), LEVELS - 1)


def scatter_chart(run: PlotData) -> Chart | None:
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
        [panel for word in ("read", "write") for panel in _scatter_panels(word, lines, x)],
        [
            Tic(WIDTH * (tic - x_scale.low) / width, axes.short(tic), index % 2 == 1)
            for index, tic in enumerate(x_scale.tics)
        ],
        [
            f"{name}: {value_text(min(present(values)))} to {value_text(max(present(values)), MS)} at"
            f" {value_text(kept[0][0])} to {value_text(kept[-1][0])} operations/s"
            for name, values in lines.items()
        ],
        labels,
    )


def _scatter_panels(word: str, lines: dict[str, Values], x: list[float]) -> list[Panel]:
    """Return the panel of an operation; [] if its latencies are unknown."""
    styles = {f"{word} {q}": PERCENTILE_STYLES[q][0] for q in _QUANTILES}
    drawn = [ChartLine(name, style, MS, x, lines[name]) for name, style in styles.items() if name in lines]
    if not drawn:
        return []
    scale = axes.logarithmic([value for line in drawn for value in present(line.values)], _SCATTER_PX)
    return [Panel(f"{word} latency, ms", scale, _SCATTER_PX, drawn, is_dotted=True)]


MAX_ROWS = 200
_RUN = "run"
"""The kind of events with which agents log the beginning and the marks of runs."""


def events_of(data: ReportData) -> list[Mark]:
    """Return the run's marks, and the nodes' events and gaps, in chronological order.

    The nodes' copies of the marks are left out, and so are single intervals that a busy machine did not sample.
    """
    marks = [Mark(mark.time_s, "", "mark", mark.text) for mark in data.run.marks]
    steps = [Mark(step.time_s, "", "clock", step_text(step)) for step in data.run.clock_steps]
    events = [event for event in data.merged.marks if event.kind != _RUN]
    gaps = [
        Mark(gap.begin_s, node.node, gap.cause, gap_text(gap, partial(clock_text, zone_s=data.zone_s)))
        for node in data.gaps
        for gap in node.gaps
        if gap.cause == NO_ANSWER or gap.intervals > 1
    ]
    return sorted([*marks, *steps, *events, *gaps], key=lambda mark: mark.time_s)


def events(data: ReportData) -> Iterator[Block]:
    marks = events_of(data)
    if not marks:
        yield Paragraph("No marks, and no events on the nodes.")
        return
    rows = [
        [clock_text(mark.time_s, data.zone_s), shown(mark.kind), shown(mark.node) or "run", shown(mark.text)]
        for mark in marks[:MAX_ROWS]
    ]
    yield Table("Marks of the run, and events on the nodes", ["at", "kind", "on", "text"], rows, 4)
    if len(marks) > MAX_ROWS:
        yield Paragraph(f"{count_text(len(marks) - MAX_ROWS, 'later event')} not shown.")


# The maximum number of gaps in the text alternative.
_MAX_GAPS = 10
_SERVER_ROWS = {f"{operation.plural}_per_s": f"server {operation.title}/s" for operation in OPERATIONS}
_HEADER = ("", "time", "average", "lowest", "at", "highest", "at")
# Rates that cover more intervals than this include a time in which a node did not answer. The times between readings
# vary by less.
_MAX_INTERVALS = 1.5


def over_time(data: ReportData) -> Iterator[Block]:
    run = data.merged
    begin_s = run.times[0] - run.interval_s if run.times else 0.0
    end_s = run.times[-1] if run.times else 0.0
    client = client_lines(data.results, begin_s, end_s, run.interval_s)
    server, (other_rates, other_tails) = node_lines(run, CLUSTER), other_lines(run, CLUSTER)
    missing_nodes = missing(run)
    gaps = missing_nodes.gaps
    panels = [
        TimePanel("client throughput, operations/s", client[:1]),
        TimePanel("client p99, ms", client[1:], log=True),
        TimePanel("server throughput, operations/s", [*server[:2], *other_rates]),
        TimePanel("server p99, ms", [slowest_line(run, CLUSTER), *server[2:], *other_tails], log=True),
        *resource_panels(run),
    ]
    texts = [
        f"{gap.text(len(run.nodes))} from {clock_text(gap.begin_s, run.zone_s)} to {clock_text(gap.end_s, run.zone_s)}"
        for gap in gaps
    ]
    marks = [Mark(mark.time_s, shown(mark.node), mark.kind, shown(mark.text)) for mark in events_of(data)]
    title = "Throughput and p99 over time"
    if chart := time_chart("over-time", title, run, panels, gaps, marks, texts[:_MAX_GAPS]):
        yield chart
    yield from throughput_table(data, missing_nodes.incomplete)


@dataclass(frozen=True)
class _Interval:
    """The operations per second in an interval; `length_s` is the time that they cover."""

    end_s: float
    length_s: float
    per_s: float


def throughput_table(data: ReportData, incomplete: Sequence[bool]) -> list[Block]:
    """Return the table, and how many intervals it omits because nodes are missing; [] if no throughput is known.

    `incomplete` states for each of the run's times whether a node is missing.
    """
    total, run = data.total, data.merged
    if total is None:
        return []
    inside = _inside(run, total)
    lengths_s = series(run, CLUSTER, "interval_s")
    longest_s = _MAX_INTERVALS * run.interval_s
    complete = [index for index in inside if not incomplete[index] and (lengths_s[index] or 0.0) <= longest_s]
    mean_lengths_s = _mean_lengths_s(run)
    server = []
    has_others = any(not operation.is_usual for operation in occurring([total.values]))
    rows_shown = {**_SERVER_ROWS, **({TOTAL_RATE: "server operations/s"} if has_others else {})}
    for column, name in rows_shown.items():
        rates = series(run, CLUSTER, column)
        if any(rates[index] for index in inside):
            intervals = [*_intervals((run.times[index], mean_lengths_s[index], rates[index]) for index in complete)]
            server.append(_row(name, intervals, data.zone_s))
    client = _client_intervals(data, total)
    if not server and not client:
        return []
    rows = [_row(_client_name(client, run.interval_s), client, data.zone_s)] if data.results else []
    blocks: list[Block] = [Table(f"Throughput per interval of {run.interval_s:g} s", _HEADER, [*rows, *server])]
    omitted = len(inside) - len(complete)
    if server and omitted:
        text = f"Server: {omitted} of {count_text(len(inside), 'interval')} not included"
        blocks.append(Paragraph(f"{text}, because not all nodes have values for them."))
    return blocks


def _inside(run: PlotData, total: PhaseSummary) -> list[int]:
    """Return the indices of the intervals that lie completely inside the measured phases."""
    begin_s, end_s = total.begin_s - TOLERANCE_S, total.end_s + TOLERANCE_S
    return [index for index, time_s in enumerate(run.times) if begin_s <= time_s - run.interval_s and time_s <= end_s]


def _mean_lengths_s(run: PlotData) -> list[float | None]:
    """Return the mean time that the nodes' rates cover in each interval.

    The length of the cluster's row is that of the longest, so the sum of these would exceed the time that has passed.
    """
    lengths_s = zip(*(series(run, node, "interval_s") for node in run.nodes), strict=True)
    return [fmean(known) if (known := present(values)) else None for values in lengths_s]


def _intervals(values: Iterable[tuple[float, float | None, float | None]]) -> Iterator[_Interval]:
    """Yield the intervals whose lengths and rates are known, given the ends, lengths and rates of all of them."""
    for end_s, length_s, per_s in values:
        if length_s and per_s is not None:
            yield _Interval(end_s, length_s, per_s)


def _client_intervals(data: ReportData, total: PhaseSummary) -> list[_Interval]:
    """Return the clients' intervals, without those that a gap or the end of the phases makes too short."""
    step_s = data.merged.interval_s
    intervals = [
        _Interval(point.end_s, point.end_s - point.begin_s, point.ops_per_s)
        for point in client_points(map(_without_latencies, data.results), total.begin_s, total.end_s, step_s)
        if point.ops_per_s is not None
    ]
    return [interval for interval in intervals if interval.length_s >= step_s * (1 - TOLERANCE)]


def _without_latencies(result: ClientResult) -> ClientResult:
    """Return the result without its latencies, which take most of the time to combine."""
    operations = (
        replace(
            operation,
            intervals=tuple(replace(interval, response=None, service=None) for interval in operation.intervals),
        )
        for operation in result.operations
    )
    return replace(result, operations=tuple(operations))


def _client_name(intervals: Sequence[_Interval], step_s: float) -> str:
    """Return the name of the clients' row, with the lengths of their intervals if these differ from `step_s`."""
    name = "client operations/s"
    lengths_s = [interval.length_s for interval in intervals]
    if all(abs(length_s - step_s) <= step_s * TOLERANCE for length_s in lengths_s):
        return name
    shortest, longest = (f"{round(length_s, 1):g}" for length_s in (min(lengths_s), max(lengths_s)))
    return f"{name} (intervals of {shortest if shortest == longest else f'{shortest} to {longest}'} s)"


def _row(name: str, intervals: Sequence[_Interval], zone_s: int) -> list[str]:
    """Return a row; the average is that of all operations over the time that the intervals cover."""
    if not intervals:
        return [name, *("-" for _ in _HEADER[1:])]
    covered_s = sum(interval.length_s for interval in intervals)
    average = sum(interval.per_s * interval.length_s for interval in intervals) / covered_s
    lowest = min(intervals, key=attrgetter("per_s"))
    highest = max(intervals, key=attrgetter("per_s"))
    cells = [cell for end in (lowest, highest) for cell in (number_text(end.per_s, 0), clock_text(end.end_s, zone_s))]
    return [name, f"{covered_s:.0f} s", number_text(average, 0), *cells]


def each_node(data: ReportData) -> Iterator[Block]:
    charts = node_charts(data.merged)
    yield from charts
    others = len(data.merged.nodes) - len(charts)
    if charts and others:
        yield Paragraph(f"Not shown: {count_text(others, 'other node')} without values, or with a lower p99.")


def latency_distribution(data: ReportData) -> Iterator[Block]:
    total = data.total
    begin_s, end_s = (total.begin_s, total.end_s) if total else (-inf, inf)
    totals = [total_within(operation, begin_s, end_s) for result in data.results for operation in result.operations]
    kind, client = combined_latency(total for total in totals if total)
    charts = [
        percentile_chart(data, client, kind),
        *(latency_heat_map(data.merged, operation) for operation in OPERATIONS),
        scatter_chart(data.merged),
    ]
    yield from (chart for chart in charts if chart)
