"""Converts the times of a node's clock to the clock on which recordings are merged.

The ticks at which a node's clock was set follow from the monotonic times in its recording.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import NamedTuple

from collector.merge.recordings import Recording, recordings, sessions
from collector.model.snapshot import Event
from collector.node.nodetool.nodetool_source import PREFIX as REPORT
from collector.recording.header import MAX_SERIES, SeriesLimit
from collector.recording.reader import Entry
from collector.recording.trimming import TickSpan

# The fastest change of an offset that can be due to drift, in seconds per second: the kernel changes a clock's
# frequency by at most 500 ppm, and an unsynchronised clock is typically accurate to 100 ppm.
MAX_DRIFT = 0.001
MIN_STEP_S = 0.5
"""The shortest step of a node's clock that is found in its recording."""


@dataclass(frozen=True)
class ClockSegment:
    """Consecutive ticks of a session between two steps of its clock.

    number          the sequence number of the first tick.
    stepped_s       how far the clock was set by the steps before.
    begin_s, end_s  the times of the first and the last tick on the node's clock.
    """

    session: str
    number: int
    stepped_s: float
    begin_s: float
    end_s: float


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
        begun = (part for part in reversed(self.segments) if part.session == session and part.number <= number)
        stepped_s = next((part.stepped_s for part in begun), 0.0)
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


# How far the steps in a recording may differ from the measured change of the clock, in addition to an interval.
_SLACK_S = 1.0
# A clock may be set between a tick's time and its scrapes.
_LATE_S = 0.5


class _Begin(NamedTuple):
    """When a tick began on the node's wall clock, and when its first scrape ended on the monotonic clock."""

    wall_s: float
    monotonic_s: float


def clock_with_steps(recording: Recording, measured: Sequence[tuple[float, float]]) -> ClockCorrection | None:
    """Return the correction of a node's clock with the steps in its recording, and the drift between them.

    measured  for each measurement in chronological order, the reference clock's time, and how far the node's clock was
              ahead.

    Returns None if there are no steps, or if they do not agree with the measurements: then the monotonic clock stood
    still, for example because a virtual machine was paused. Raises OSError and TooManySeriesError.
    """
    segments = _segments(recording)
    if len(segments) < 2 or not measured:
        return None
    change_s = measured[-1][1] - measured[0][1]
    node_s = measured[0][0] + measured[0][1]
    interval_s = recording.sessions[-1].head.interval_s

    # The first measurement was made in one of the segments that show its time, and after which the clock changed by as
    # much as was measured. If it is the only one, it was made before the steps that follow it.
    possible_s = [
        segment.stepped_s
        for index, segment in enumerate(segments)
        if (index == 0 or segment.begin_s - interval_s <= node_s) and node_s <= segment.end_s + interval_s
        if len(measured) == 1 or abs(segments[-1].stepped_s - segment.stepped_s - change_s) <= interval_s + _SLACK_S
    ]
    if not possible_s:
        return None
    segments = [replace(segment, stepped_s=segment.stepped_s - possible_s[0]) for segment in segments]
    by_time = {measured[-1][0]: measured[-1][1] - segments[-1].stepped_s, measured[0][0]: measured[0][1]}
    return replace(ClockCorrection.measured(by_time.items()), segments=tuple(segments))


def corrected_span(
    folder: Path, measured: Sequence[tuple[float, float]], begin_s: float, end_s: float
) -> TickSpan | None:
    """Return the ticks of a node's recording in a time range of the reference clock; their times are the node's.

    `measured` is as in `clock_with_steps`. Returns None if that finds no steps. Raises OSError and TooManySeriesError.
    """
    recording = _recording_in(folder)
    clock = clock_with_steps(recording, measured)
    if clock is None:
        return None
    span = TickSpan()
    for entry in _entries(recording):
        time_s = entry.snapshot.tick.time_s
        if begin_s <= clock.of_tick(entry.head.session, entry.number).reference_s(time_s) <= end_s:
            span.add(time_s)
    return span


def clock_parts(folder: Path, measured: Sequence[tuple[float, float]]) -> tuple[ClockPart, ...]:
    """Return the periods between the steps of a machine's clock that are found in its recording.

    `measured` is as in `clock_with_steps`. Returns () if that finds no steps. Raises OSError and TooManySeriesError.
    """
    clock = clock_with_steps(_recording_in(folder), measured) or IDENTITY
    parts: list[ClockPart] = []
    stepped_s: float | None = None
    last_s = -inf
    for segment in clock.segments:
        of_segment = clock.of_tick(segment.session, segment.number)
        begin_s = of_segment.reference_s(segment.begin_s)
        if segment.stepped_s != stepped_s:
            if parts:
                parts[-1] = replace(parts[-1], end_s=begin_s + _LATE_S)
            parts.append(ClockPart(last_s - _LATE_S, inf, segment.begin_s - begin_s))
        stepped_s, last_s = segment.stepped_s, of_segment.reference_s(segment.end_s)
    return tuple(parts)


def _recording_in(folder: Path) -> Recording:
    """Return the first recording in a directory; one without sessions if there is none."""
    return next(iter(recordings(sessions([folder])[0])[0]), Recording("", ()))


def _segments(recording: Recording) -> list[ClockSegment]:
    segments: list[ClockSegment] = []
    last: _Begin | None = None
    stepped_s = 0.0
    for entry in _entries(recording):
        time_s, begin = entry.snapshot.tick.time_s, _begin_of(entry)
        step_s = 0.0 if last is None or begin is None else _step_s(last, begin, entry.head.interval_s)
        stepped_s += step_s
        if not segments or step_s or entry.head.session != segments[-1].session:
            segments.append(ClockSegment(entry.head.session, entry.number, stepped_s, time_s, time_s))
        segments[-1] = replace(segments[-1], end_s=time_s)
        last = begin or last
    return segments


def _entries(recording: Recording) -> Iterator[Entry]:
    limit = SeriesLimit(MAX_SERIES, recording.node)
    for session in recording.sessions:
        yield from (record for record in session.read(limit) if isinstance(record, Entry))


def _begin_of(entry: Entry) -> _Begin | None:
    """Return when a tick began; None if it does not show that."""
    tick = entry.snapshot.tick
    # A report runs in the background, and may have finished before the tick in which it is returned.
    reads_s = [scrape.at_s for scrape in entry.snapshot.scrapes if not scrape.source.startswith(REPORT)]
    return _Begin(tick.time_s + tick.late_s, min(reads_s)) if reads_s else None


def _step_s(before: _Begin, after: _Begin, interval_s: float) -> float:
    """Return by how much the clock was set between two ticks; 0 if it was not, or if that is unknown."""
    if after.monotonic_s <= before.monotonic_s:
        # The machine was restarted.
        return 0.0
    step_s = (after.wall_s - before.wall_s) - (after.monotonic_s - before.monotonic_s)
    # A tick's first scrape may end up to half an interval later.
    return step_s if abs(step_s) > max(MIN_STEP_S, interval_s / 2) else 0.0
