"""Events along an axis of time: those that cannot be told apart are one mark with a count."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from exporters.gnuplot.plot_data import Mark
from exporters.gnuplot.time_axis import TimeAxis

_NEAR_PX = 12.0
_MOST = 60
_HOVER_LINES = 8
_TIMES = "\u00d7"


@dataclass(frozen=True)
class Group:
    """Marks of one kind that are near to one another, the first one first."""

    marks: Sequence[Mark]

    @property
    def kind(self) -> str:
        """What they are."""
        return self.marks[0].kind

    @property
    def time_s(self) -> float:
        """When the first of them was."""
        return self.marks[0].time_s

    def text(self) -> str:
        """Return its label: the kind, and which node, or how many."""
        many = len(self.marks)
        return f"{self.kind} {_TIMES}{many}" if many > 1 else f"{self.kind} {self.marks[0].node}".strip()

    def details(self, zone_s: int) -> list[str]:
        """Return what a pointer that rests on it is told."""
        lines = [
            " ".join(part for part in (_clock(mark.time_s + zone_s), mark.node, f"{mark.kind}: {mark.text}") if part)
            for mark in self.marks[:_HOVER_LINES]
        ]
        more = len(self.marks) - len(lines)
        return [*lines, f"and {more} more"] if more else lines


def groups(marks: Sequence[Mark], axis: TimeAxis) -> list[Group]:
    """Return the marks that can be seen: those of a kind within a few pixels are one, or more so that not too many."""
    seen = sorted((mark for mark in marks if axis.begin_s <= mark.time_s <= axis.end_s), key=lambda mark: mark.time_s)
    near = _NEAR_PX
    while len(found := _joined(seen, axis, near)) > _MOST and near < axis.right - axis.left:
        near *= 2
    return found


def _joined(marks: Sequence[Mark], axis: TimeAxis, near_px: float) -> list[Group]:
    kinds: dict[str, list[list[Mark]]] = defaultdict(list)
    for mark in marks:
        found = kinds[mark.kind]
        if found and axis.px(mark.time_s) - axis.px(found[-1][0].time_s) <= near_px:
            found[-1].append(mark)
        else:
            found.append([mark])
    return [Group(group) for groups in kinds.values() for group in groups]


def _clock(local_s: float) -> str:
    tenths = round(local_s * 10) % 864000
    minutes, rest = divmod(tenths, 600)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{rest / 10:04.1f}"
