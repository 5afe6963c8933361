"""One panel: lines over time with an axis and a legend, or "no data"."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor

from exporters.charts import axes
from exporters.charts.axes import Scale, TimeAxis
from exporters.charts.data_files import Values, has_isolated, present
from exporters.charts.plot_page import LEFT_PX, SMALL_PT, TEXT_PT, Box, Page
from exporters.charts.text_escaping import quoted, width_px

_MARKS = 14
# How far the last label of a time axis may extend beyond it, in pixels.
END_PX = 60.0
_MAX_TICS = 200
_GAP_PX = 14
# Between panels side by side, there is room for an axis and its label.
_BESIDE_PX = LEFT_PX + 4
_HOVER_LINES = 4
# Distance between hover points, in pixels: small enough to make the points easy to hit, but no smaller, because each
# point enlarges the SVG.
_HOVER_PX = 4.0
HOVER = "hypertext point pt 7 ps 1 lc rgb '#FF000000'"


@dataclass(frozen=True)
class LineStyle:
    """A line's style: a colour variable of the script, and point and dash types that distinguish it without colour."""

    colour: str
    point: int = 0
    dash: str = "solid"
    width: float = 1.3


@dataclass(frozen=True)
class Line:
    """One line of a panel.

    value   the gnuplot expression to draw.
    values  the values of this expression.
    second  whether the line uses the axis on the right.
    file    the line's data file, a key of `Drawing.files`.
    """

    title: str
    value: str
    values: Values
    style: LineStyle
    second: bool = False
    file: str = ""

    def plot(self, page: Page) -> str:
        """Return the line's part of the `plot` command."""
        style, isolated = self.style, has_isolated(self.values)
        options = f"lc rgb {style.colour} lw {style.width} dt {style.dash}"
        if isolated:
            points = f"pt {style.point or 7} ps 0.5*dot"
        elif style.point:
            points = f"pt {style.point} ps 0.8*dot pi {max(1, len(self.values) // _MARKS)}"
        else:
            points = ""
        return (
            f"{page.data_of(self.file)} using (x(1)):({self.value}) with {'linespoints' if points else 'lines'}"
            f" {options}{' ' + points if points else ''}{' axes x1y2' if self.second else ''}"
            f" {f'title {quoted(self.title)}' if self.title else 'notitle'}"
        )


def column(name: str, factor: str = "") -> str:
    """Return the gnuplot expression for a column of the data file."""
    return f"column('{name}'){factor}"


def lines_panel(
    page: Page,
    box: Box,
    label: str,
    lines: Sequence[Line],
    *,
    log: bool = False,
    second_label: str = "",
    has_legend: bool = True,
) -> list[str]:
    """Return the commands that draw a panel; lines without data are left out."""
    drawn = [line for line in lines if can_be_drawn(line, log)]
    firsts = [line for line in drawn if not line.second] or drawn
    scale = (axes.logarithmic if log else axes.linear)(_all(firsts), box.height)
    seconds = [line for line in drawn if line.second]
    commands = [*page.margins(box), *axis(page, box, label, scale)]
    if seconds:
        second = scale_commands("y2", axes.linear(_all(seconds), box.height))
        commands += ["set border 11", *second, *rotated_label(page, box, second_label, box.right + 48, 9002)]
    commands += [
        *(legend(page, box, 60 if seconds else 12) if has_legend else ["unset key"]),
        *plot([*(line.plot(page) for line in drawn), *hover(page, box, drawn)]),
    ]
    return commands + (["set border 3", "unset y2tics; unset label 9002"] if seconds else [])


def hover(page: Page, box: Box, lines: Sequence[Line]) -> list[str]:
    """Return the `plot` elements that add tooltips to the last titled line of each data file, in the SVG only.

    Each tooltip shows the values of up to `_HOVER_LINES` lines at one time.
    """
    titled = [line for line in lines if line.title]
    files = dict.fromkeys(line.file for line in titled)
    return [_tooltips(page, box, [line for line in titled if line.file == file][-_HOVER_LINES:]) for file in files]


def _tooltips(page: Page, box: Box, titled: Sequence[Line]) -> str:
    """Return the `plot` element that shows the values of these lines, which have the same data file."""
    words = "".join(rf"\n{line.title} %.5g" for line in titled)
    values = ", ".join(line.value for line in titled)
    second = " axes x1y2" if titled[-1].second else ""
    every = ceil(_HOVER_PX * len(titled[-1].values) / box.width)
    return (
        f"for [i=1:hover] {page.data_of(titled[-1].file)} every {every} using (x(1)):({titled[-1].value})"
        f":(clock(0).sprintf({quoted(words)}, {values})) with labels {HOVER}{second} notitle"
    )


def can_be_drawn(line: Line, log: bool) -> bool:
    """Return whether a line has a value that the axis can show."""
    return any(value > 0 or not log for value in present(line.values))


def _all(lines: Iterable[Line]) -> list[float]:
    return [value for line in lines for value in present(line.values)]


def axis(page: Page, box: Box, label: str, scale: Scale, *, numbers: bool = True) -> list[str]:
    """Return the commands for the left axis; its label never overlaps the numbers."""
    return [*rotated_label(page, box, label, box.left - LEFT_PX + 16, 9001), *scale_commands("y", scale, numbers)]


def scale_commands(axis: str, scale: Scale, labels: bool = True) -> list[str]:
    """Return the commands that set up `axis` (x, y or y2); if `labels` is false, the tics have no numbers."""
    span = f"set {axis}range [{scale.low:.6g}:{scale.high:.6g}]"
    # gnuplot rejects a logarithmic axis whose range includes zero, so the order of these commands matters.
    both = [span, f"set logscale {axis}"] if scale.log else [f"unset logscale {axis}", span]
    return [*both, f"set {axis}tics ({tics_text(scale, labels)})"]


def tics_text(scale: Scale, labels: bool = True) -> str:
    """Return the tics with their labels as a gnuplot list."""
    return ", ".join(f"'{axes.short(tic) if labels else ''}' {tic:.6g}" for tic in scale.tics)


def time_axis_commands(axis: TimeAxis, labels: bool, beyond_px: float = END_PX) -> list[str]:
    """Return the commands that set up the axis, which shows local time; `labels` is true only for the lowest panel.

    The last label is left out if it extends more than `beyond_px` beyond the axis.
    """
    step = axis.step()
    begin, end = axis.begin_s + axis.zone_s, axis.end_s + axis.zone_s
    first, last = ceil(begin / step), floor(end / step)
    form, unit = _time_format(axis, step) if labels else ("", "")
    half = width_px(form.replace("%Y", "0000").replace("%t", "%").replace("%", "0"), TEXT_PT) / 2
    tics = ", ".join(
        f"{_hidden(axis, tic * step, half - beyond_px)}{tic * step:.14g}"
        for tic in range(first, min(last, first + _MAX_TICS) + 1)
    )
    meaning = "time since the start" if axis.is_elapsed else "local time"
    return [
        f"set xrange [{begin:.14g}:{end:.14g}]",
        f"set xtics time format '{form}' ({tics})",
        f"set xlabel '{f'{meaning}, {unit}' if labels else ''}' tc rgb ink",
    ]


def _hidden(axis: TimeAxis, local_s: float, reaches_px: float) -> str:
    return "'' " if axis.px(local_s - axis.zone_s) + reaches_px > axis.right else ""


def _time_format(axis: TimeAxis, step: float) -> tuple[str, str]:
    """Return the time format for the tic labels, and its description for the axis title."""
    if axis.is_elapsed and axis.end_s - axis.begin_s > 86400:
        return "%tH:%M", "h:min"
    if step >= 86400:
        return "%Y-%m-%d", "date"
    if axis.end_s - axis.begin_s > 86400:
        return "%m-%d %H:%M", "month-day h:min"
    if step >= 60:
        return "%H:%M", "h:min"
    digits = 0 if step >= 1 else 1 if step >= 0.1 else 3
    return (f"%H:%M:%.{digits}S" if digits else "%H:%M:%S"), "h:min:s"


def rotated_label(page: Page, box: Box, label: str, x: float, tag: int) -> list[str]:
    """Return the command that writes a rotated label beside an axis."""
    y = (box.top + box.bottom) / 2
    return [page.label(label, x, y, "center rotate tc rgb ink", tag)]


def legend(page: Page, box: Box, beside_px: float = 12) -> list[str]:
    """Return the command that places the legend to the right of the panel."""
    at = f"screen {page.x(box.right + beside_px)}, screen {page.y(box.top)}"
    return [f"set key at {at} left top Left reverse samplen 2.2 spacing 1.1 font ',{SMALL_PT}' tc rgb ink"]


def plot(parts: Sequence[str], before: Sequence[str] = ()) -> list[str]:
    """Return the commands in `before` and a `plot` command with these parts.

    If there are no parts, return commands that write "no data" instead.
    """
    if not parts:
        return [
            f"set label 9999 'no data' at graph 0.5, graph 0.5 center font ',{TEXT_PT + 2}' tc rgb faint front",
            "plot NaN notitle",
            "unset label 9999",
        ]
    first, *rest = parts
    return [*before, " , \\\n     ".join([f"plot {first}", *rest]).replace(" , \\", ", \\")]


def stack(area: Box, number: int) -> list[Box]:
    """Return the boxes of `number` panels that fill `area`, one above the other."""
    height = (area.height - _GAP_PX * (number - 1)) / number
    return [
        Box(area.left, top, area.right, top + height)
        for top in (area.top + index * (height + _GAP_PX) for index in range(number))
    ]


def side_by_side(area: Box, number: int) -> list[Box]:
    """Return the boxes of `number` panels that fill `area`, from left to right."""
    width = (area.width - _BESIDE_PX * (number - 1)) / number
    return [
        Box(left, area.top, left + width, area.bottom)
        for left in (area.left + index * (width + _BESIDE_PX) for index in range(number))
    ]
