"""Plots the latency by percentile in the measured phases of several runs, one line per run."""

from exporters.gnuplot import value_axis
from exporters.gnuplot.data_files import present
from exporters.gnuplot.overlay.aligned_runs import bucket_key
from exporters.gnuplot.overlay.run_styles import style_of, title_of
from exporters.gnuplot.plot_data import Run
from exporters.gnuplot.plot_page import LEFT_PX, RIGHT_PX, TIME_AXIS_PX, Box, Drawing, Page
from exporters.gnuplot.plot_panel import axis, legend, plot, stack
from exporters.gnuplot.plots.percentiles import curves, decades, tics, total_buckets
from exporters.gnuplot.text_escaping import heading, quoted

_OPERATIONS = ("read", "write")
_STEPS_BETWEEN_POINTS = 10


def size(_: Run) -> tuple[int, int]:
    """Return the default width and height in pixels."""
    return 1200, 1000


def draw(page: Page) -> Drawing:
    run, inside = page.run, page.inside
    area = Box(LEFT_PX, inside.top + 12, page.width - RIGHT_PX, inside.bottom - TIME_AXIS_PX)
    boxes = stack(area, len(_OPERATIONS))
    totals = {
        f"{index} {heading(name)} {operation}": total_buckets(run, bucket_key(operation, name))
        for operation in _OPERATIONS
        for index, name in enumerate(run.rows, 1)
    }
    data = curves(totals)
    drawn = [None if total is None else column for column, total in enumerate(totals.values(), 2)]
    values = [value for name, column in data.items() if name != "percentile" for value in present(column)]
    scale = value_axis.logarithmic(values, boxes[0].height)
    last = max((decades(total) for total in totals.values() if total), default=2.0)
    commands = page.labels("measured phases")
    for number, (operation, box) in enumerate(zip(_OPERATIONS, boxes, strict=True)):
        is_last = box is boxes[-1]
        commands += [
            "",
            f"# {operation.capitalize()}s.",
            *page.margins(box),
            f"set xrange [0:{last:.4f}]",
            f"set xtics ({', '.join(tics(last, labels=is_last))})",
            f"set xlabel '{'percentile, % of operations' if is_last else ''}' tc rgb ink",
            *axis(page, box, f"{operation} latency, ms", scale),
            *(["unset key"] if number else legend(page, box)),
            *plot(_lines(page, drawn[number * len(run.rows) : (number + 1) * len(run.rows)])),
            "unset label",
        ]
    return Drawing(commands, {"": data})


def _lines(page: Page, columns: list[int | None]) -> list[str]:
    """Return the parts of the `plot` command; each run has the number of a column, or None if it has no data."""
    if not any(columns):
        return []
    return [_line(page, index, name, columns[index]) for index, name in enumerate(page.run.rows)]


def _line(page: Page, index: int, name: str, column: int | None) -> str:
    style = style_of(index)
    # The panels share a legend, so a run without data also has an entry.
    value = "NaN" if column is None else f"column({column})"
    return (
        f"{page.data} using (-log10(1 - column('percentile')/100)):({value}) with linespoints"
        f" lc rgb {style.colour} lw {style.width} dt {style.dash} pt {style.point} ps 0.8*dot"
        f" pi {_STEPS_BETWEEN_POINTS} title {quoted(title_of(name))}"
    )
