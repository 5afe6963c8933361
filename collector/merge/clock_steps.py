"""Finds the ticks at which a node's clock was set, from the monotonic times in its recording."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import inf
from pathlib import Path
from typing import NamedTuple

from collector.merge.clock_correction import MIN_STEP_S, ClockCorrection, ClockPart, ClockSegment
from collector.merge.recordings import Recording, recordings, sessions
from collector.node.nodetool.nodetool_source import PREFIX as REPORT
from collector.recording.header import MAX_SERIES, SeriesLimit
from collector.recording.reader import Entry
from collector.recording.trimming import TickSpan

# How far the steps in a recording may differ from the measured change of the clock, in addition to an interval.
_SLACK_S = 1.0
# A clock may be set between a tick's time and its scrapes.
_LATE_S = 0.5


@dataclass
class _Segment:
    """Consecutive ticks between two steps: the first one, by how much the clock was set there, and the time range."""

    session: str
    number: int
    step_s: float
    begin_s: float
    end_s: float


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
    return _clock_of(recording, list(_segments(recording)), measured)


def _clock_of(
    recording: Recording, segments: Sequence[_Segment], measured: Sequence[tuple[float, float]]
) -> ClockCorrection | None:
    if len(segments) < 2 or not measured:
        return None
    totals_s = list(accumulate(segment.step_s for segment in segments))
    change_s = measured[-1][1] - measured[0][1]
    node_s = measured[0][0] + measured[0][1]
    interval_s = recording.sessions[-1].head.interval_s

    # The first measurement was made in one of the segments that show its time, and after which the clock changed by as
    # much as was measured. If it is the only one, it was made before the steps that follow it.
    possible = [
        index
        for index, segment in enumerate(segments)
        if (index == 0 or segment.begin_s - interval_s <= node_s) and node_s <= segment.end_s + interval_s
        if len(measured) == 1 or abs(totals_s[-1] - totals_s[index] - change_s) <= interval_s + _SLACK_S
    ]
    if not possible:
        return None
    stepped_s = [total_s - totals_s[possible[0]] for total_s in totals_s]
    by_time = {measured[-1][0]: measured[-1][1] - stepped_s[-1], measured[0][0]: measured[0][1]}
    without_steps = ClockCorrection.measured(by_time.items())
    parts = (
        ClockSegment(segment.session, segment.number, part_s)
        for segment, part_s in zip(segments, stepped_s, strict=True)
    )
    return replace(without_steps, segments=tuple(parts))


def corrected_span(
    folder: Path, measured: Sequence[tuple[float, float]], begin_s: float, end_s: float
) -> TickSpan | None:
    """Return the ticks of a node's recording in a time range of the reference clock; their times are the node's.

    `measured` is as in `clock_with_steps`. Returns None if that finds no steps. Raises OSError and TooManySeriesError.
    """
    recording = _recording_in(folder)
    clock = None if recording is None else clock_with_steps(recording, measured)
    if recording is None or clock is None:
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
    recording = _recording_in(folder)
    segments = [] if recording is None else list(_segments(recording))
    clock = None if recording is None else _clock_of(recording, segments, measured)
    if clock is None:
        return ()
    parts: list[ClockPart] = []
    last_s = -inf
    for segment in segments:
        of_segment = clock.of_tick(segment.session, segment.number)
        begin_s = of_segment.reference_s(segment.begin_s)
        if parts and segment.step_s:
            parts[-1] = replace(parts[-1], end_s=begin_s + _LATE_S)
        if segment.step_s or not parts:
            parts.append(ClockPart(last_s - _LATE_S, inf, segment.begin_s - begin_s))
        last_s = of_segment.reference_s(segment.end_s)
    return tuple(parts)


def _recording_in(folder: Path) -> Recording | None:
    return next(iter(recordings(sessions([folder])[0])[0]), None)


def _segments(recording: Recording) -> Iterator[_Segment]:
    current: _Segment | None = None
    last: _Begin | None = None
    for entry in _entries(recording):
        time_s, begin = entry.snapshot.tick.time_s, _begin_of(entry)
        step_s = 0.0 if last is None or begin is None else _step_s(last, begin, entry.head.interval_s)
        if current is None or step_s or entry.head.session != current.session:
            if current is not None:
                yield current
            current = _Segment(entry.head.session, entry.number, step_s, time_s, time_s)
        current.end_s = time_s
        last = begin or last
    if current is not None:
        yield current


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
