"""Converts the times of a node's clock to the clock on which recordings are merged."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from collector.model.snapshot import Event

# The fastest change of an offset that can be due to drift, in seconds per second: the kernel changes a clock's
# frequency by at most 500 ppm, and an unsynchronised clock is typically accurate to 100 ppm.
MAX_DRIFT = 0.001
MIN_STEP_S = 0.5
"""The shortest step of a node's clock that is found in its recording."""


@dataclass(frozen=True)
class ClockSegment:
    """The ticks of a session from a sequence number on, and how far the clock was set by steps before them."""

    session: str
    number: int
    stepped_s: float


@dataclass(frozen=True)
class ClockPart:
    """A period in which a clock was not set; it overlaps the next one if the time of the step is not known exactly.

    begin_s, end_s  the period on the reference clock; they may be infinite.
    ahead_s         how far the clock was ahead.
    """

    begin_s: float
    end_s: float
    ahead_s: float


def times_when_shown(time_s: float, parts: Iterable[ClockPart]) -> list[float]:
    """Return the times of the reference clock at which a clock may have shown `time_s`."""
    times_s = ((part, time_s - part.ahead_s) for part in parts)
    return [reference_s for part, reference_s in times_s if part.begin_s <= reference_s <= part.end_s]


@dataclass(frozen=True)
class ClockCorrection:
    """Converts a node's times to the reference clock; by default, the two clocks agree.

    Between two measurements the offset changes linearly; before the first and after the last it is constant.

    times_s    the times of the measurements on the node's clock, in ascending order.
    offsets_s  how far the node's clock was ahead at those times.
    segments   the parts of the recording between steps of the node's clock, in the order of the ticks; empty if there
               are no steps. A time that a clock shows twice belongs to two ticks, so `of_tick` selects the correction.
    """

    times_s: tuple[float, ...] = (0.0,)
    offsets_s: tuple[float, ...] = (0.0,)
    segments: tuple[ClockSegment, ...] = ()

    def of_tick(self, session: str, number: int) -> "ClockCorrection":
        """Return the correction at a tick, given its session and its sequence number in it."""
        stepped_s = 0.0
        for segment in self.segments:
            if segment.session == session and segment.number <= number:
                stepped_s = segment.stepped_s
        if not stepped_s:
            return self
        return ClockCorrection(
            tuple(time_s + stepped_s for time_s in self.times_s),
            tuple(offset_s + stepped_s for offset_s in self.offsets_s),
        )

    @classmethod
    def constant(cls, offset_s: float) -> "ClockCorrection":
        """Return the correction of a clock that is always ahead by `offset_s`."""
        return cls((0.0,), (offset_s,))

    @classmethod
    def measured(cls, measurements: Iterable[tuple[float, float]]) -> "ClockCorrection":
        """Return the correction for measurements of how far the node's clock was ahead.

        Each measurement contains the reference clock's time and the offset.

        If the offset changes faster than MAX_DRIFT, it is not interpolated, because the clock was stepped at an unknown
        time. Instead, the first offset applies throughout, which is correct for the ticks before the step.
        """
        ordered = sorted(measurements)
        times_s = tuple(at_s + offset_s for at_s, offset_s in ordered)
        offsets_s = tuple(offset_s for _, offset_s in ordered)
        if not ordered:
            return IDENTITY
        if any(abs(o2_s - o1_s) > MAX_DRIFT * (at2_s - at1_s) for (at1_s, o1_s), (at2_s, o2_s) in pairwise(ordered)):
            return cls.constant(offsets_s[0])
        return cls(times_s, offsets_s)

    def reference_s(self, time_s: float) -> float:
        """Return the reference clock's time when the node's clock shows `time_s`; it never decreases with `time_s`."""
        return time_s - self._offset_s(time_s, self.times_s)

    def shown_s(self, begin_s: float, end_s: float) -> tuple[float, float]:
        """Return the earliest and the latest time that the node's clock may have shown in a time range."""
        stepped_s = [segment.stepped_s for segment in self.segments] or [0.0]
        return self.node_s(begin_s) + min(stepped_s), self.node_s(end_s) + max(stepped_s)

    def node_s(self, reference_s: float) -> float:
        """Return what the node's clock shows at a time of the reference clock; the inverse of `reference_s`."""
        return reference_s + self._offset_s(reference_s, [self.reference_s(time_s) for time_s in self.times_s])

    def _offset_s(self, at_s: float, times_s: Sequence[float]) -> float:
        """Return how far the node's clock was ahead; `times_s` are those of the measurements on the clock of `at_s`."""
        following = bisect_right(times_s, at_s)
        if following in (0, len(times_s)):
            return self.offsets_s[-1 if following else 0]
        begin_s, end_s = times_s[following - 1 : following + 1]
        before_s, after_s = self.offsets_s[following - 1 : following + 1]
        return before_s + (at_s - begin_s) / (end_s - begin_s) * (after_s - before_s)


IDENTITY = ClockCorrection()
"""The correction of a clock that agrees with the reference clock."""


def with_reference_time(event: Event, clock: ClockCorrection) -> Event:
    """Return the event; if it has a time of its own, that time is converted to the reference clock."""
    return event if event.time_s is None else replace(event, time_s=clock.reference_s(event.time_s))
