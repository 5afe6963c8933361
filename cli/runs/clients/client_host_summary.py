"""Computes the highest values of a run's client hosts from their recordings."""

from collections.abc import Sequence
from math import inf
from pathlib import Path

from cli.errors import CasstatError
from cli.recordings.run_defaults import clocks_of
from collector.cluster.grid import SpanGrid
from collector.cluster.merge import merge
from collector.cluster.merge_job import Job
from collector.cluster.recordings import recordings
from collector.cluster.sessions import sessions
from collector.runs.run import Run, RunPhase
from exporters.summary.client_peaks import CLIENT_NEEDS, ClientInterval, client_intervals, client_peaks
from exporters.summary.phase_summary import Peak


def client_peaks_of(folder: Path, run: Run, phases: Sequence[RunPhase]) -> list[dict[str, Peak]]:
    """Return the highest values of the client hosts in each phase; `phases` must be in order and not overlap.

    Raises CasstatError.
    """
    hosts = [host for host in run.client_hosts if host.folder]
    if not hosts:
        return [{} for _ in phases]
    interval_s = max((host.interval_s for host in hosts if host.interval_s is not None), default=inf)
    grid = SpanGrid(interval_s, spans=tuple((phase.begin_s, phase.end_s) for phase in phases))
    try:
        all_sessions, _ = sessions([folder / host.folder for host in hosts])
        host_recordings, _ = recordings(all_sessions)
        clocks = clocks_of(folder, run, host_recordings)
        result = merge(host_recordings, Job(grid, clocks, CLIENT_NEEDS, client_intervals))
    except OSError as error:
        raise CasstatError(f"{error.filename}: {error.strerror}") from None
    intervals: list[list[tuple[str, float, ClientInterval]]] = [[] for _ in phases]
    for node in result.nodes:
        for interval in node.product:
            intervals[grid.span_of(interval.index)].append((node.node, grid.end_of(interval.index), interval))
    return [client_peaks(in_phase) for in_phase in intervals]
