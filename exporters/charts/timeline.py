"""Annotations along the time axis: phases, missing nodes and events."""

from collections.abc import Sequence

from exporters.charts.axes import TimeAxis, groups
from exporters.charts.label_lanes import LANE_PX, LabelLanes
from exporters.charts.missing_nodes import Gap
from exporters.charts.plot_data import Mark, Phase
from exporters.charts.plot_page import SMALL_PT, Page
from exporters.charts.text_escaping import hypertext, shortened

_SEEN_PX = 2.0
_ABOVE_PX = 8.0


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
