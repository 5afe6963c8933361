"""Plots the latency by percentile in the measured phases of several runs, one line per run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collector.load_results.client_result import Latency
from collector.node.metrics.requests import OPERATIONS, Operation
from exporters.charts import axes
from exporters.charts.gnuplot_page import Drawing, Page
from exporters.charts.gnuplot_panel import plot, stack, style_of, title_of
from exporters.charts.merged_plot_data import bucket_key
from exporters.charts.overlay.overlaid_lines import kind_note, shown_kinds
from exporters.charts.plot_data import (
    Columns,
    PlotData,
    axis_steps,
    curves,
    decades,
    present,
    total_buckets,
)
from exporters.charts.plot_style import heading, quoted
from exporters.charts.plots.percentiles import percentile_axis

# The key of the data file with the clients' latencies.
_CLIENT = "client"
_PANEL_PX = 450
_STEPS_BETWEEN_POINTS = 10
_MS_PER_S = 1000.0


@dataclass(frozen=True)
class _Panel:
    """A panel.

    kind     the clients' kind of latency; "" for an operation of the servers.
    columns  the number of each run's column in the data file; None if the run has no data.
    """

    comment: str
    label: str
    kind: str
    columns: Sequence[int | None]

    @property
    def file(self) -> str:
        return _CLIENT if self.kind else ""


def size(run: PlotData) -> tuple[int, int]:
    """Return the default width and height in pixels."""
    return 1200, 100 + _PANEL_PX * (len(_operations(run)) + len(_client_kinds(run)))


def draw(page: Page) -> Drawing:
    run = page.run
    totals = {
        f"{index} {heading(name)} {operation.word}": total_buckets(run, bucket_key(operation.word, name))
        for operation in _operations(run)
        for index, name in enumerate(run.rows, 1)
    }
    latencies = _client_latencies(run)
    files = {"": curves(totals), **({_CLIENT: _client_curves(latencies)} if latencies else {})}
    panels = [*_server_panels(run, [*totals.values()]), *_client_panels(run, [*latencies.values()])]
    boxes = stack(page.area(), len(panels))
    columns = [column for data in files.values() for name, column in data.items() if name != "percentile"]
    scale = axes.logarithmic([value for column in columns for value in present(column)], boxes[0].height)
    ends = [decades(total.total) for total in totals.values() if total]
    last = max([*ends, *(_end(latency) for latency in latencies.values() if latency)], default=2.0)
    commands = page.labels("measured phases")
    for panel, box in zip(panels, boxes, strict=True):
        commands += [
            "",
            f"# {panel.comment}.",
            *page.margins(box),
            *percentile_axis(last, labels=box is boxes[-1]),
            *page.axis(box, panel.label, scale),
            *(kind_note(page, box, panel.kind) if panel.kind else []),
            *(page.legend(box) if box is boxes[0] else ["unset key"]),
            *plot(_lines(page, panel)),
            "unset label",
        ]
    return Drawing(commands, files)


def _server_panels(run: PlotData, totals: Sequence[object]) -> list[_Panel]:
    return [
        _Panel(
            operation.title[0].upper() + operation.title[1:],
            f"{operation.word.replace('_', ' ')} latency, ms",
            "",
            _columns(run, totals, index),
        )
        for index, operation in enumerate(_operations(run))
    ]


def _operations(run: PlotData) -> list[Operation]:
    """Return reads, writes and the other operations that occur in one of the runs."""
    return [
        operation
        for operation in OPERATIONS
        if operation.is_usual or any(total_buckets(run, bucket_key(operation.word, name)) for name in run.rows)
    ]


def _client_panels(run: PlotData, latencies: Sequence[object]) -> list[_Panel]:
    return [
        _Panel(f"Clients, {kind} time", "client latency, ms", kind, _columns(run, latencies, index))
        for index, kind in enumerate(_client_kinds(run))
    ]


def _columns(run: PlotData, values: Sequence[object], panel: int) -> list[int | None]:
    """Return the numbers of a panel's columns; `values` has the data of all panels, which is None if there is none."""
    first = panel * len(run.rows)
    return [None if values[index] is None else index + 2 for index in range(first, first + len(run.rows))]


def _client_kinds(run: PlotData) -> list[str]:
    return shown_kinds(client.distributions for client in run.clients.values())


def _client_latencies(run: PlotData) -> dict[str, Latency | None]:
    """Return the clients' latencies by the heading of their column; {} if no run has any."""
    return {
        f"{index} {heading(name)} client_{kind}": run.clients[name].distributions.get(kind)
        if name in run.clients
        else None
        for kind in _client_kinds(run)
        for index, name in enumerate(run.rows, 1)
    }


def _client_curves(latencies: Mapping[str, Latency | None]) -> Columns:
    """Return the percentiles as `curves` does. They are exact, because the clients' values are not interpolated."""
    ends = {name: _end(latency) for name, latency in latencies.items() if latency}
    steps = axis_steps(set(ends.values()))
    percentages = [100 * (1 - 10**-at) for at in steps]
    columns: Columns = {"percentile": percentages}
    for name, latency in latencies.items():
        values_s = latency.percentiles_s(percentages) if latency else [None] * len(steps)
        columns[f"{name}_ms"] = [
            None if value_s is None or at > ends[name] else value_s * _MS_PER_S
            for at, value_s in zip(steps, values_s, strict=True)
        ]
    return columns


def _end(latency: Latency) -> float:
    """Return the end of a client's curve, as a number of nines."""
    return decades(sum(latency.counts.values()))


def _lines(page: Page, panel: _Panel) -> list[str]:
    """Return the parts of the `plot` command."""
    if not any(panel.columns):
        return []
    return [_line(page, panel, index, name) for index, name in enumerate(page.run.rows)]


def _line(page: Page, panel: _Panel, index: int, name: str) -> str:
    style, column = style_of(index), panel.columns[index]
    # The panels share a legend, so a run without data also has an entry.
    value = "NaN" if column is None else f"column({column})"
    return (
        f"{page.data_of(panel.file)} using (-log10(1 - column('percentile')/100)):({value}) with linespoints"
        f" lc rgb {style.colour} lw {style.width} dt {style.dash} pt {style.point} ps 0.8*dot"
        f" pi {_STEPS_BETWEEN_POINTS} title {quoted(title_of(name))}"
    )
