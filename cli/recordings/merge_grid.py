"""The time range and the interval of a merge."""

from operator import itemgetter
from typing import TYPE_CHECKING

import click

from cli.parameters.parameter_types import bounds
from cli.recordings.merge_options import MAX_S, MergeSettings
from cli.recordings.run_defaults import limits_of
from collector.printable import one_line

if TYPE_CHECKING:
    from collector.merge.grid import Grid
    from collector.merge.recordings import Recording
    from collector.runs.run import Run

# The intervals, in seconds, to choose from if the number of points is limited.
USUAL_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)


def grid_of(settings: MergeSettings, node_recordings: list["Recording"], source: "Run | None") -> "Grid":
    """Return the grid that follows from the settings, the recordings and, if they belong to a run, the run.

    Raises click.UsageError.
    """
    from collector.merge.grid import Grid

    sessions = [session for recording in node_recordings for session in recording.sessions]
    first_s, last_s = min(session.begin_s for session in sessions), max(session.end_s for session in sessions)
    begin_s, end_s = _span(settings, source, first_s, last_s)
    return Grid(_interval(settings, node_recordings, min(end_s, last_s) - max(begin_s, first_s)), begin_s, end_s)


def _span(settings: MergeSettings, source: "Run | None", first_s: float, last_s: float) -> tuple[float, float]:
    """Return the time range to merge; the recordings range from `first_s` to `last_s`. Raises click.UsageError."""
    begin, end = settings.begin, settings.end
    limits = limits_of(source, settings.phase)
    if limits is not None:
        # The journals of a run begin before the run, so that its first tick already has rates.
        begin, end = limits[0] if begin is None else begin, limits[1] if end is None else end
    begin_s, end_s = bounds(begin, end, first_s, last_s)
    if source is None or settings.phase is not None:
        return begin_s, end_s
    # Ticks often fall exactly on the limits; an error in a clock's offset must not exclude them.
    error_s = max((clock.error_s for node in source.nodes for clock in node.clocks), default=0.0)
    return begin_s - error_s, end_s + error_s


def _interval(settings: MergeSettings, node_recordings: list["Recording"], length_s: float) -> float:
    """Return the interval, in seconds, for a time range of `length_s`. Raises click.BadParameter."""
    sessions = [
        (session.head.interval_s, recording.node) for recording in node_recordings for session in recording.sessions
    ]
    return interval_for(settings, *max(sessions, key=itemgetter(0)), length_s)


def interval_for(settings: MergeSettings, slowest_s: float, slowest: str, length_s: float) -> float:
    """Return the interval, in seconds, for a time range of `length_s`. Raises click.BadParameter.

    `slowest_s` is the longest interval of a recording, and `slowest` is its node.
    """
    if settings.interval is None:
        return max(slowest_s, _usual(settings.points, length_s))
    if settings.interval < slowest_s:
        why = f"shorter than the interval of {one_line(slowest)}'s recording, {slowest_s:g} s"
        raise click.BadParameter(why, param_hint="--interval")
    return settings.interval


def _usual(points: int | None, length_s: float) -> float:
    """Return the shortest interval in USUAL_S that yields at most `points` intervals in `length_s`, else MAX_S.

    Returns the default interval if `points` is None.
    """
    from collector.merge.merge_job import DEFAULT_S

    if points is None:
        return DEFAULT_S
    enough = (interval_s for interval_s in USUAL_S if length_s / interval_s <= points)
    return next(enough, MAX_S)
