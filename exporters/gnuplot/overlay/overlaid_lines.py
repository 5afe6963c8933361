"""Plots the operations, latency, CPU and GC of several runs on one time axis, one line per run."""

from exporters.gnuplot.data_files import Columns, Values, series, thinned
from exporters.gnuplot.overlay.run_styles import style_of, title_of
from exporters.gnuplot.plot_data import Run
from exporters.gnuplot.plot_page import LEFT_PX, RIGHT_PX, TIME_AXIS_PX, Box, Drawing, Page
from exporters.gnuplot.plot_panel import Line, lines_panel, stack
from exporters.gnuplot.text_escaping import heading
from exporters.gnuplot.time_axis import time_axis
from exporters.gnuplot.timeline import Timeline

# The columns that are shown, with the labels of their panels, and whether their axes are logarithmic.
_PANELS = (
    ("reads_per_s", "reads/s", False),
    ("writes_per_s", "writes/s", False),
    ("read_p99_ms", "read p99, ms", True),
    ("write_p99_ms", "write p99, ms", True),
    ("cpu_busy_pct", "CPU busy, %", False),
    ("gc_pct", "GC, % of time", False),
)


def size(_: Run) -> tuple[int, int]:
    """Return the default width and height in pixels."""
    return 1200, 1300


def draw(page: Page) -> Drawing:
    run, inside = page.run, page.inside
    data = _data(run, 2 * page.width)
    x_axis = time_axis(run, LEFT_PX, page.width - RIGHT_PX, is_elapsed=True)
    timeline = Timeline(page, x_axis, run.phases, (), ())
    top = inside.top + timeline.height
    boxes = stack(Box(LEFT_PX, top, page.width - RIGHT_PX, inside.bottom - TIME_AXIS_PX), len(_PANELS))
    commands = ["x(n) = column(n)", "clock(n) = strftime('%tH:%tM:%tS', x(1))", *timeline.lines()]
    commands += [*page.labels(f"aligned by phase, interval {run.interval_s:g} s"), *timeline.label_commands(top)]
    for panel, ((_, label, log), box) in enumerate(zip(_PANELS, boxes, strict=True)):
        lines = [
            Line(
                title_of(name),
                f"column({2 + panel * len(run.rows) + index})",
                list(data.values())[1 + panel * len(run.rows) + index],
                style_of(index),
            )
            for index, name in enumerate(run.rows)
        ]
        commands += [
            "",
            f"# {label}.",
            *x_axis.commands(labels=box is boxes[-1]),
            *lines_panel(page, box, label, lines, log=log, has_legend=panel == 0),
            "unset label",
        ]
    return Drawing(commands, {"": data})


def _data(run: Run, limit: int) -> Columns:
    columns: dict[str, Values] = {"time": list(run.times)}
    for column, _, _ in _PANELS:
        for index, name in enumerate(run.rows, 1):
            columns[f"{index} {heading(name)} {column}"] = series(run, name, column)
    return thinned(columns, limit)
