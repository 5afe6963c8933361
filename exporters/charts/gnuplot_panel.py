"""The panels of a plot as gnuplot commands: axes, lines, legends, and annotations along the time axis."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor

from exporters.charts import axes
from exporters.charts.axes import Scale, TimeAxis, groups
from exporters.charts.gnuplot_page import LEFT_PX, RIGHT_PX, Box, Page, scale_commands
from exporters.charts.plot_data import Gap, Mark, Phase, Values, has_isolated, present
from exporters.charts.plot_style import LANE_PX, SMALL_PT, TEXT_PT, LabelLanes, hypertext, quoted, shortened, width_px

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
# Yellow is left out, because it is hardly visible on a light background.
_RUN_COLOURS = ("blue", "vermillion", "green", "purple", "orange", "sky")
_RUN_POINTS = (7, 9, 5, 11, 13, 4)
_RUN_DASHES = ("solid", "'-'", "'.'")
# The width of a name in the legend, which also has a sample of the line.
_NAME_PX = RIGHT_PX - 52
MAX_RUNS = len(_RUN_COLOURS) * len(_RUN_DASHES)
_SEEN_PX = 2.0
_ABOVE_PX = 8.0


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


def plot_panel(
    page: Page,
    box: Box,
    label: str,
    scale: Scale,
    parts: Sequence[str],
    *,
    x_axis: Sequence[str] = (),
    before: Sequence[str] = (),
    legend: Box | None = None,
) -> list[str]:
    """Return the commands that draw a panel from the parts of its `plot` command.

    label   the label of the vertical axis, which has the scale `scale`.
    x_axis  the commands of the horizontal axis, unless the panels share it.
    before  commands that precede the `plot` command if there are parts.
    legend  the box beside which the legend is; None for no legend.
    """
    key = page.legend(legend) if legend else ["unset key"]
    return [*page.margins(box), *x_axis, *page.axis(box, label, scale), *key, *plot(parts, before)]


def value_axis(scale: Scale, label: str) -> list[str]:
    """Return the commands of a horizontal axis of numbers."""
    return [*scale_commands("x", scale), f"set xlabel {quoted(label)} tc rgb ink"]


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
    scale = (axes.logarithmic if log else axes.linear)(values_of(firsts), box.height)
    seconds = [line for line in drawn if line.second]
    commands = [*page.margins(box), *page.axis(box, label, scale)]
    if seconds:
        second = scale_commands("y2", axes.linear(values_of(seconds), box.height))
        commands += ["set border 11", *second, *page.rotated_label(box, second_label, box.right + 48, 9002)]
    commands += [
        *(page.legend(box, 60 if seconds else 12) if has_legend else ["unset key"]),
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


def values_of(lines: Iterable[Line]) -> list[float]:
    """Return all known values of the lines."""
    return [value for line in lines for value in present(line.values)]


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


def style_of(index: int) -> LineStyle:
    """Return the style of the run with this index, which is less than MAX_RUNS."""
    dash, colour = divmod(index, len(_RUN_COLOURS))
    return LineStyle(_RUN_COLOURS[colour], _RUN_POINTS[colour], _RUN_DASHES[dash], 1.6)


def title_of(name: str) -> str:
    """Return a run's name, shortened to the width of the legend."""
    return shortened(name, SMALL_PT, _NAME_PX)


class Timeline:
    """The annotations of one time axis: shading and lines in every panel, and labels above the first panel."""

    def __init__(
        self, page: Page, axis: TimeAxis, phases: Sequence[Phase], gaps: Sequence[Gap], marks: Sequence[Mark]
    ) -> None:
        self.page = page
        self.axis = axis
        self.phases = [phase for phase in phases if axis.inside(phase.begin_s, phase.end_s)]
        self.gaps = _visible(gaps, axis)
        self.groups = groups(marks, axis)
        self.lanes = LabelLanes(axis.left, axis.right)
        self._place_labels()

    def _place_labels(self) -> None:
        """Place the labels: gaps first, then events, starting with the rarest kinds, which are the most informative."""
        for gap in sorted(self.gaps, key=lambda gap: gap.begin_s - gap.end_s):
            middle = (self.axis.px(gap.begin_s) + self.axis.px(gap.end_s)) / 2
            self.lanes.add(gap.text(len(self.page.run.nodes)), "alarm", middle)
        kinds = [group.kind for group in self.groups]
        for group in sorted(self.groups, key=lambda group: (kinds.count(group.kind), group.time_s)):
            self.lanes.add(group.text(), "faint", self.axis.px(group.time_s))

    @property
    def height(self) -> float:
        """The height of the labels above the first panel, in pixels."""
        return self.lanes.height + (LANE_PX if self.phases else 0) + _ABOVE_PX

    def lines(self) -> list[str]:
        """Return the commands for the shading and the lines in all following panels."""
        lines = [line for phase in self.phases for line in self._phase_lines(phase)]
        for gap in self.gaps:
            begin, end = _at(self.axis, gap.begin_s), _at(self.axis, gap.end_s)
            lines += [
                _shade(begin, end, "fc rgb alarm fs transparent solid 0.12 noborder"),
                f"set arrow from {begin}, graph 0 to {end}, graph 0 nohead front lw 4 lc rgb alarm",
            ]
        times = [_at(self.axis, group.time_s) for group in self.groups]
        lines += [_vertical_line(x, "lw 0.8 dt '-' lc rgb mark") for x in times]
        return ["# Along the time axis: phases, missing nodes, events.", *lines] if lines else []

    def _phase_lines(self, phase: Phase) -> list[str]:
        span = self.axis.inside(phase.begin_s, phase.end_s) or (self.axis.begin_s, self.axis.begin_s)
        shade = (
            [_shade(_at(self.axis, span[0]), _at(self.axis, span[1]), "fc rgb shade fs solid noborder")]
            if phase.warm_up
            else []
        )
        edges = [_at(self.axis, time_s) for time_s in span if self.axis.begin_s < time_s < self.axis.end_s]
        return [*shade, *(_vertical_line(x, "lw 1 lc rgb faint") for x in edges)]

    def label_commands(self, top: float) -> list[str]:
        """Return the commands for the labels and tooltips above the first panel, whose upper edge is at `top`."""
        bottom = top - _ABOVE_PX
        style = f"center font ',{SMALL_PT}' tc rgb"
        lines = [
            self.page.label(
                label.text, label.middle, top - _ABOVE_PX - LANE_PX * (label.lane + 0.5), f"{style} {label.colour}"
            )
            for label in self.lanes.labels
        ]
        for phase in self.phases:
            left, right = map(self.axis.px, self.axis.inside(phase.begin_s, phase.end_s) or (0, 0))
            name = shortened(phase.name or ("warm-up" if phase.warm_up else ""), SMALL_PT, right - left - 4)
            y = bottom - self.lanes.height - LANE_PX / 2
            lines += [self.page.label(name, (left + right) / 2, y, f"{style} ink")] if name else []
        return lines + [
            f"set label {hypertext(group.details(self.axis.zone_s))} at {_at(self.axis, group.time_s)}, graph 1"
            " hypertext point pt 11 ps dot lc rgb mark front"
            for group in self.groups
        ]


def shared_timeline(page: Page) -> Timeline:
    """Return the annotations of the time axis that all panels of a page share."""
    axis = axes.time_axis(page.run, LEFT_PX, page.width - RIGHT_PX)
    return Timeline(page, axis, page.run.phases, page.missing.gaps, page.run.marks)


def _at(axis: TimeAxis, time_s: float) -> str:
    """Return a time as a coordinate of the axis, which shows local time."""
    return f"{time_s + axis.zone_s:.14g}"


def _visible(gaps: Sequence[Gap], axis: TimeAxis) -> list[Gap]:
    """Return the gaps, merging those that are less than two pixels apart if this hardly changes the drawing.

    Two gaps are merged if the same nodes are missing in both, or if the earlier one is less than two pixels wide.
    """
    lines: list[Gap] = []
    for gap in gaps:
        last = lines[-1] if lines else None
        if last and _should_merge(last, gap, axis):
            nodes = tuple(dict.fromkeys((*last.nodes, *gap.nodes)))
            lines[-1] = Gap(last.begin_s, gap.end_s, nodes, max(last.count, gap.count, len(nodes)))
        else:
            lines.append(gap)
    return lines


def _should_merge(last: Gap, gap: Gap, axis: TimeAxis) -> bool:
    apart = axis.px(gap.begin_s) - axis.px(last.end_s)
    width = axis.px(last.end_s) - axis.px(last.begin_s)
    return apart < _SEEN_PX and (gap.nodes == last.nodes or width < _SEEN_PX)


def _shade(begin: str, end: str, style: str) -> str:
    return f"set object rectangle from {begin}, graph 0 to {end}, graph 1 behind {style}"


def _vertical_line(x: str, style: str) -> str:
    return f"set arrow from {x}, graph 0 to {x}, graph 1 nohead back {style}"
