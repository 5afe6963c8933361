"""Events along a time axis: events too close to distinguish share one mark with a count."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from exporters.charts.plot_data import Mark
from exporters.charts.time_axis import TimeAxis

_NEAR_PX = 12.0
_MAX_GROUPS = 60
_HOVER_LINES = 8
_TIMES = "\u00d7"
_RUN = "run"


@dataclass(frozen=True)
class Group:
    """Marks of one kind that are close to each other, in chronological order."""

    marks: Sequence[Mark]

    @property
    def kind(self) -> str:
        """The kind that all the marks share."""
        return self.marks[0].kind

    @property
    def time_s(self) -> float:
        """The time of the first mark."""
        return self.marks[0].time_s

    def text(self) -> str:
        """Return the label: the kind, followed by the node, or by the number of marks if there are several.

        Every node records the same marks of a run, so their label is the text of the last one, without the kind.
        """
        if self.kind == _RUN:
            return self.marks[-1].text.removeprefix(f"{_RUN} ")
        many = len(self.marks)
        return f"{self.kind} {_TIMES}{many}" if many > 1 else f"{self.kind} {self.marks[0].node}".strip()

    def details(self, zone_s: int) -> list[str]:
        """Return the tooltip's lines: the first marks in local time, and the number of others."""
        lines = [
            " ".join(part for part in (_clock(mark.time_s + zone_s), mark.node, f"{mark.kind}: {mark.text}") if part)
            for mark in self.marks[:_HOVER_LINES]
        ]
        more = len(self.marks) - len(lines)
        return [*lines, f"and {more} more"] if more else lines


def groups(marks: Sequence[Mark], axis: TimeAxis) -> list[Group]:
    """Return the visible marks in groups.

    The maximum width of a group is doubled until at most `_MAX_GROUPS` groups remain, or it reaches the axis's width.
    """
    seen = sorted((mark for mark in marks if axis.begin_s <= mark.time_s <= axis.end_s), key=lambda mark: mark.time_s)
    near = _NEAR_PX
    while len(runs := _grouped(seen, axis, near)) > _MAX_GROUPS and near < axis.right - axis.left:
        near *= 2
    return runs


def _grouped(marks: Sequence[Mark], axis: TimeAxis, near_px: float) -> list[Group]:
    kinds: dict[str, list[list[Mark]]] = defaultdict(list)
    for mark in marks:
        runs = kinds[mark.kind]
        if runs and axis.px(mark.time_s) - axis.px(runs[-1][0].time_s) <= near_px:
            runs[-1].append(mark)
        else:
            runs.append([mark])
    return [Group(group) for groups in kinds.values() for group in groups]


def _clock(local_s: float) -> str:
    tenths = round(local_s * 10) % 864000
    minutes, rest = divmod(tenths, 600)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{rest / 10:04.1f}"
