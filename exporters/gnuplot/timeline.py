"""What is said along the axis of time: warm-up and phases, missing nodes, events."""

from collections.abc import Sequence

from exporters.gnuplot.event_marks import groups
from exporters.gnuplot.label_lanes import LANE_PX, LabelLanes
from exporters.gnuplot.missing_nodes import Gap
from exporters.gnuplot.plot_data import Mark, Phase
from exporters.gnuplot.plot_page import SMALL_PT, Page
from exporters.gnuplot.text_escaping import hovered, shortened
from exporters.gnuplot.time_axis import TimeAxis

_SEEN_PX = 2.0
_ABOVE_PX = 8.0


class Timeline:
    """All that is said along one axis of time: in every panel, and in words above the first one."""

    def __init__(
        self, page: Page, axis: TimeAxis, phases: Sequence[Phase], gaps: Sequence[Gap], marks: Sequence[Mark]
    ) -> None:
        self.page = page
        self.axis = axis
        self.phases = [phase for phase in phases if axis.inside(phase.begin_s, phase.end_s)]
        self.gaps = _seen(gaps, axis)
        self.groups = groups(marks, axis)
        self.lanes = LabelLanes(axis.left, axis.right)
        self._place()

    def _place(self) -> None:
        """Give every label its place: what is rare comes first, for it says more."""
        for gap in sorted(self.gaps, key=lambda gap: gap.begin_s - gap.end_s):
            middle = (self.axis.px(gap.begin_s) + self.axis.px(gap.end_s)) / 2
            self.lanes.place(gap.text(len(self.page.run.nodes)), "alarm", middle)
        kinds = [group.kind for group in self.groups]
        for group in sorted(self.groups, key=lambda group: (kinds.count(group.kind), group.time_s)):
            self.lanes.place(group.text(), "faint", self.axis.px(group.time_s))

    @property
    def height(self) -> float:
        """How much room the words need above the first panel, in pixels."""
        return self.lanes.height + (LANE_PX if self.phases else 0) + _ABOVE_PX

    def lines(self) -> list[str]:
        """Return the commands for all panels that follow: shades, and lines at marks."""
        found = [line for phase in self.phases for line in self._phase_lines(phase)]
        for gap in self.gaps:
            begin, end = self.axis.at(gap.begin_s), self.axis.at(gap.end_s)
            found += [
                _shade(begin, end, "fc rgb alarm fs transparent solid 0.12 noborder"),
                f"set arrow from {begin}, graph 0 to {end}, graph 0 nohead front lw 4 lc rgb alarm",
            ]
        times = [self.axis.at(group.time_s) for group in self.groups]
        found += [_upright(x, "lw 0.8 dt '-' lc rgb mark") for x in times]
        return ["# Along the axis of time: phases, missing nodes, events.", *found] if found else []

    def _phase_lines(self, phase: Phase) -> list[str]:
        span = self.axis.inside(phase.begin_s, phase.end_s) or (self.axis.begin_s, self.axis.begin_s)
        shade = (
            [_shade(self.axis.at(span[0]), self.axis.at(span[1]), "fc rgb shade fs solid noborder")]
            if phase.warm_up
            else []
        )
        edges = [self.axis.at(time_s) for time_s in span if self.axis.begin_s < time_s < self.axis.end_s]
        return [*shade, *(_upright(x, "lw 1 lc rgb faint") for x in edges)]

    def words(self, top: float) -> list[str]:
        """Return the commands for the words above the first panel, whose upper edge is at `top`."""
        bottom = top - _ABOVE_PX
        look = f"center font ',{SMALL_PT}' tc rgb"
        found = [
            self.page.label(
                word.text, word.middle, top - _ABOVE_PX - LANE_PX * (word.lane + 0.5), f"{look} {word.colour}"
            )
            for word in self.lanes.words
        ]
        for phase in self.phases:
            left, right = map(self.axis.px, self.axis.inside(phase.begin_s, phase.end_s) or (0, 0))
            name = shortened(phase.name or ("warm-up" if phase.warm_up else ""), SMALL_PT, right - left - 4)
            y = bottom - self.lanes.height - LANE_PX / 2
            found += [self.page.label(name, (left + right) / 2, y, f"{look} ink")] if name else []
        return found + [
            f"set label {hovered(group.details(self.axis.zone_s))} at {self.axis.at(group.time_s)}, graph 1"
            " hypertext point pt 11 ps dot lc rgb mark front"
            for group in self.groups
        ]


def _seen(gaps: Sequence[Gap], axis: TimeAxis) -> list[Gap]:
    """Return the gaps as they can be seen: what is less than two pixels apart or wide becomes one with the next."""
    found: list[Gap] = []
    for gap in gaps:
        last = found[-1] if found else None
        if last and _are_one(last, gap, axis):
            nodes = tuple(dict.fromkeys((*last.nodes, *gap.nodes)))
            found[-1] = Gap(last.begin_s, gap.end_s, nodes, max(last.count, gap.count, len(nodes)))
        else:
            found.append(gap)
    return found


def _are_one(last: Gap, gap: Gap, axis: TimeAxis) -> bool:
    apart = axis.px(gap.begin_s) - axis.px(last.end_s)
    width = axis.px(last.end_s) - axis.px(last.begin_s)
    return apart < _SEEN_PX and (gap.nodes == last.nodes or width < _SEEN_PX)


def _shade(begin: str, end: str, look: str) -> str:
    return f"set object rectangle from {begin}, graph 0 to {end}, graph 1 behind {look}"


def _upright(x: str, look: str) -> str:
    return f"set arrow from {x}, graph 0 to {x}, graph 1 nohead back {look}"
