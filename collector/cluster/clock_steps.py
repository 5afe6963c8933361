"""Finds the ticks at which a node's clock was set, from the monotonic times in its recording."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from collector.cluster.clock_correction import ClockSegment
from collector.cluster.recordings import Recording
from collector.journal.read_limits import MAX_SERIES, SeriesLimit
from collector.journal.reader import Entry

# A step is found if it is longer than this, and than half an interval: a tick's first scrape may end that much later.
_MIN_STEP_S = 0.5
# How far the steps in a recording may differ from the measured change of the clock, in addition to an interval.
_SLACK_S = 1.0


@dataclass
class _Segment:
    """Consecutive ticks between two steps: the first one, by how much the clock was set there, and the time range."""

    session: str
    number: int
    step_s: float
    begin_s: float
    end_s: float


def clock_segments(recording: Recording, measured: Sequence[tuple[float, float]]) -> tuple[ClockSegment, ...]:
    """Return the parts of a recording between the steps of the node's clock.

    measured  for each measurement in chronological order, the reference clock's time, and how far the node's clock was
              ahead. The segments' offsets are relative to the first measurement.

    Returns () if there are no steps, or if they do not agree with the measurements: then the monotonic clock stood
    still, for example because a virtual machine was paused. Raises OSError and TooManySeriesError.
    """
    segments = list(_segments(recording))
    if len(segments) < 2 or not measured:
        return ()
    totals_s = list(accumulate(segment.step_s for segment in segments))
    change_s = measured[-1][1] - measured[0][1]
    node_s = measured[0][0] + measured[0][1]
    interval_s = recording.sessions[-1].head.interval_s

    # The first measurement was made in one of the segments that show its time, and after which the clock changed by as
    # much as was measured.
    possible = [
        index
        for index, segment in enumerate(segments)
        if (index == 0 or segment.begin_s - interval_s <= node_s) and node_s <= segment.end_s + interval_s
        if abs(totals_s[-1] - totals_s[index] - change_s) <= interval_s + _SLACK_S
    ]
    if not possible:
        return ()
    first = possible[0]
    return tuple(
        ClockSegment(segment.session, segment.number, total_s - totals_s[first])
        for segment, total_s in zip(segments, totals_s, strict=True)
    )


def _segments(recording: Recording) -> Iterator[_Segment]:
    current: _Segment | None = None
    last: Entry | None = None
    limit = SeriesLimit(MAX_SERIES, recording.node)
    for session in recording.sessions:
        for entry in session.read(limit):
            if not isinstance(entry, Entry):
                continue
            time_s, step_s = entry.snapshot.tick.time_s, 0.0 if last is None else _step_s(last, entry)
            if current is None or step_s or entry.head.session != current.session:
                if current is not None:
                    yield current
                current = _Segment(entry.head.session, entry.number, step_s, time_s, time_s)
            current.end_s = time_s
            last = entry
    if current is not None:
        yield current


def _step_s(before: Entry, after: Entry) -> float:
    """Return by how much the clock was set between two ticks; 0 if it was not, or if that is unknown."""
    begins_s = []
    for entry in (before, after):
        at_s = min((scrape.at_s for scrape in entry.snapshot.scrapes), default=None)
        if at_s is None:
            return 0.0
        begins_s.append((entry.snapshot.tick.time_s + entry.snapshot.tick.late_s, at_s))
    (before_s, before_at_s), (after_s, after_at_s) = begins_s
    if after_at_s <= before_at_s:
        # The machine was restarted.
        return 0.0
    step_s = (after_s - before_s) - (after_at_s - before_at_s)
    return step_s if abs(step_s) > max(_MIN_STEP_S, after.head.interval_s / 2) else 0.0
