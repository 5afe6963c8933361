"""Plots what servers and clients of several runs measured on one time axis, one line per run."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from collector.node.metrics.requests import OPERATIONS
from exporters.charts.axes import time_axis
from exporters.charts.gnuplot_page import LEFT_PX, RIGHT_PX, Box, Drawing, Page
from exporters.charts.gnuplot_panel import Line, Timeline, lines_panel, stack, style_of, time_axis_commands, title_of
from exporters.charts.plot_data import Columns, PlotData, Values, series, thinned
from exporters.charts.plot_style import SMALL_PT, heading
from exporters.results.summary.client_values import LATENCY_KINDS

# The distance of a note from its panel, and the height of its lines.
_BESIDE_PX, _LINE_PX = 12, 14
_NOTES = {"response": ("response time",), "service": ("service time:", "coordinated omission", "possible")}
_CLIENT_PANEL_PX = 210


@dataclass(frozen=True)
class _Panel:
    """A panel: its column, its label, whether its axis is logarithmic, and the clients' kind of latency, if any."""

    column: str
    label: str
    log: bool = False
    kind: str = ""


@dataclass(frozen=True)
class _ClientPanel(_Panel):
    """A panel of the clients, with the values of each run that has them."""

    values: Mapping[str, Values] = field(default_factory=dict)


_SERVER_PANELS = (
    _Panel("reads_per_s", "reads/s"),
    _Panel("writes_per_s", "writes/s"),
    _Panel("read_p99_ms", "read p99, ms", log=True),
    _Panel("write_p99_ms", "write p99, ms", log=True),
    _Panel("cpu_busy_pct", "CPU busy, %"),
    _Panel("gc_pct", "GC, % of time"),
)


def _server_panels(run: PlotData) -> list[_Panel]:
    """Return the panels of the servers, with those of other operations than reads and writes that occur in a run."""
    panels = list(_SERVER_PANELS)
    for operation in OPERATIONS:
        rate = f"{operation.plural}_per_s"
        if not operation.is_usual and any(any(series(run, name, rate)) for name in run.rows):
            panels.append(_Panel(rate, f"{operation.title}/s"))
            panels.append(_Panel(f"{operation.word}_p99_ms", f"{operation.title} p99, ms", log=True))
    return panels


def size(run: PlotData) -> tuple[int, int]:
    """Return the default width and height in pixels."""
    return 1200, 1300 + _CLIENT_PANEL_PX * (len(_client_panels(run)) + len(_server_panels(run)) - len(_SERVER_PANELS))


def draw(page: Page) -> Drawing:
    run = page.run
    files = {"": _data(run, 2 * page.width), **_client_data(run, 2 * page.width)}
    client_panels = _client_panels(run)
    panels = [(panel, _server_lines(run, files[""], index)) for index, panel in enumerate(_server_panels(run))]
    panels += [(panel, _client_lines(run, files, index)) for index, panel in enumerate(client_panels)]
    x_axis = time_axis(run, LEFT_PX, page.width - RIGHT_PX, is_elapsed=True)
    timeline = Timeline(page, x_axis, run.phases, (), ())
    area = page.area(timeline.height)
    boxes = stack(area, len(panels))
    commands = ["x(n) = column(n)", "clock(n) = strftime('%tH:%tM:%tS', x(1))", *timeline.lines()]
    commands += [*page.labels(f"aligned by phase, interval {run.interval_s:g} s"), *timeline.label_commands(area.top)]
    for index, ((panel, lines), box) in enumerate(zip(panels, boxes, strict=True)):
        commands += [
            "",
            f"# {panel.label}{f' ({panel.kind} time)' if panel.kind else ''}.",
            *time_axis_commands(x_axis, labels=box is boxes[-1]),
            *(kind_note(page, box, panel.kind) if panel.kind else []),
            *lines_panel(page, box, panel.label, lines, log=panel.log, has_legend=index == 0),
            "unset label",
        ]
    return Drawing(commands, files)


def _server_lines(run: PlotData, data: Columns, panel: int) -> list[Line]:
    columns = list(data.values())
    first = 1 + panel * len(run.rows)
    return [
        Line(title_of(name), f"column({first + index + 1})", columns[first + index], style_of(index))
        for index, name in enumerate(run.rows)
    ]


def _client_lines(run: PlotData, files: dict[str, Columns], panel: int) -> list[Line]:
    return [
        Line(title_of(name), f"column({panel + 2})", list(files[file].values())[panel + 1], style_of(index), file=file)
        for index, name in enumerate(run.rows)
        if (file := _client_file(index)) in files
    ]


def _client_panels(run: PlotData) -> Sequence[_ClientPanel]:
    """Return the clients' panels, in the order of the columns in the clients' data files."""
    clients = {name: client for name, client in run.clients.items() if client.times}
    if not clients:
        return ()
    operations = {name: client.ops_per_s for name, client in clients.items()}
    return (
        _ClientPanel("client_ops_per_s", "client operations/s", values=operations),
        *_latency_panels("mean", {name: client.mean_ms for name, client in clients.items()}),
        *_latency_panels("p99", {name: client.p99_ms for name, client in clients.items()}, log=True),
    )


def _latency_panels(
    statistic: str, runs: Mapping[str, Mapping[str, Values]], *, log: bool = False
) -> list[_ClientPanel]:
    """Return a panel for each shown kind of latency; `runs` has the values of each run by kind."""
    return [
        _ClientPanel(
            f"client_{kind}_{statistic}_ms",
            f"client {statistic}, ms",
            log,
            kind,
            {name: kinds[kind] for name, kinds in runs.items() if kind in kinds},
        )
        for kind in shown_kinds(runs.values())
    ]


def _client_file(index: int) -> str:
    """Return the key of the client data of the run with this index."""
    return f"client{index + 1}"


def _data(run: PlotData, limit: int) -> Columns:
    columns: dict[str, Values] = {"time": list(run.times)}
    for panel in _server_panels(run):
        for index, name in enumerate(run.rows, 1):
            columns[f"{index} {heading(name)} {panel.column}"] = series(run, name, panel.column)
    return thinned(columns, limit)


def _client_data(run: PlotData, limit: int) -> dict[str, Columns]:
    """Return a data file for each run with client results, because the intervals of their clients differ."""
    files = {}
    for index, name in enumerate(run.rows):
        client = run.clients.get(name)
        if client and client.times:
            columns: Columns = {"time": client.times}
            for panel in _client_panels(run):
                unknown: Values = [None] * len(client.times)
                columns[f"{index + 1} {heading(name)} {panel.column}"] = panel.values.get(name, unknown)
            files[_client_file(index)] = thinned(columns, limit)
    return files


def shown_kinds(runs: Iterable[Collection[str]]) -> list[str]:
    """Return the kinds of latency that have a panel; each run has the kinds that are known.

    Service times are shown only if a run has no response times; the panel then has the service times of all runs.
    """
    known = [kinds for kinds in runs if kinds]
    response, service = LATENCY_KINDS
    needs = {
        response: any(response in kinds for kinds in known),
        service: any(response not in kinds for kinds in known),
    }
    return [kind for kind in LATENCY_KINDS if needs[kind]]


def kind_note(page: Page, box: Box, kind: str) -> list[str]:
    """Return the commands that write to the right of a panel which kind of latency it shows."""
    return [
        page.label(
            text, box.right + _BESIDE_PX, box.top + _LINE_PX * (index + 0.5), f"left font ',{SMALL_PT}' tc rgb ink"
        )
        for index, text in enumerate(_NOTES[kind])
    ]
