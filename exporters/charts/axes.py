"""The axes of plots and charts: value axes, the time axis, and the events along it.

Tics are at round numbers and at round times of day; events too close to distinguish share one mark with a count.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from exporters.charts.plot_data import Mark, PlotData

_VALUE_TIC_PX = 26.0
# Positive numbers outside this range cannot be measurements, and arithmetic with them could overflow.
_MIN, _MAX = 1e-30, 1e30
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_STEPS_S = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1, 2, 5, 10, 15, 30),
    *(60 * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(3600 * hours for hours in (1, 2, 3, 6, 12)),
    *(86400 * days for days in (1, 2, 7, 14, 28, 56, 112, 365)),
)
_TIME_TIC_PX = 84.0
_NEAR_PX = 12.0
_MAX_GROUPS = 60
_HOVER_LINES = 8
_TIMES = "\u00d7"
_RUN = "run"


@dataclass(frozen=True)
class Scale:
    """A value axis, logarithmic if `log` is true."""

    low: float
    high: float
    tics: tuple[float, ...]
    log: bool = False


def short(value: float) -> str:
    """Return a short form of a number, such as 0.5, 200 or 20k."""
    for power, letter in _PREFIXES:
        if value >= max(power, 1e4):
            return f"{value / power:.4g}{letter}"
    return f"{value:.4g}"


def linear(values: Iterable[float], height_px: float, low: float = 0.0) -> Scale:
    """Return a linear axis that contains `low` and all values."""
    inside = [min(max(value, -_MAX), _MAX) for value in values]
    high, low = max(inside, default=low + 1), min([low, *inside])
    if high - low < _MIN:
        high = low + (abs(low) if abs(low) > _MIN else 1)
    step = _round_step((high - low) / max(height_px / _VALUE_TIC_PX, 2))
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return Scale(first * step, last * step, tuple(tic * step for tic in range(first, last + 1)))


def _round_step(least: float) -> float:
    power: float = 10.0 ** floor(log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def logarithmic(values: Iterable[float], height_px: float) -> Scale:
    """Return a logarithmic axis that contains all positive values."""
    inside = [min(max(value, _MIN), _MAX) for value in values if value > 0]
    low, high = min(inside, default=1.0), max(inside, default=10.0)
    powers = range(floor(log10(low)) - 1, ceil(log10(high)) + 2)
    fine = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    below = [edge for edge in fine if edge <= low * 1.0001]
    above = [edge for edge in fine if edge >= high * 0.9999 and edge > below[-1]]
    low, high = below[-1], above[0]
    decades = log10(high / low)
    room = max(height_px / _VALUE_TIC_PX, 2)
    if 3 * decades <= room:
        tics = [edge for edge in fine if low <= edge <= high]
    else:
        every = max(1, ceil(decades / room))
        powers = range(ceil(log10(low) - 1e-9), floor(log10(high) + 1e-9) + 1)
        tics = [10.0**power for power in powers if power % every == 0]
    return Scale(low, high, tuple(tics), log=True)


@dataclass(frozen=True)
class TimeAxis:
    """A time range and its position in pixels.

    Times are in seconds since the epoch, or since the start if `is_elapsed` is true.
    """

    begin_s: float
    end_s: float
    left: float
    right: float
    zone_s: int
    is_elapsed: bool = False

    def px(self, time_s: float) -> float:
        """Return a time's horizontal position, in pixels from the page's left edge."""
        return self.left + (time_s - self.begin_s) / (self.end_s - self.begin_s) * (self.right - self.left)

    def inside(self, begin_s: float, end_s: float) -> tuple[float, float] | None:
        """Return the visible part of a time range; None if no part of it is visible."""
        begin_s, end_s = max(begin_s, self.begin_s), min(end_s, self.end_s)
        return (begin_s, end_s) if begin_s < end_s else None

    def step(self) -> float:
        """Return the time between two tics, in seconds."""
        least = (self.end_s - self.begin_s) / max((self.right - self.left) / _TIME_TIC_PX, 1)
        return next((step for step in _STEPS_S if step >= least), least)


def time_axis(run: PlotData, left: float, right: float, *, is_elapsed: bool = False) -> TimeAxis:
    """Return a run's time axis. It begins one interval before the first time, which is the end of an interval."""
    begin_s = run.times[0] - run.interval_s if run.times else 0.0
    end_s = run.times[-1] if run.times else run.interval_s or 1.0
    return TimeAxis(begin_s, max(end_s, begin_s + 1e-3), left, right, run.zone_s, is_elapsed)


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
