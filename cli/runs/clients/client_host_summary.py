"""Computes the highest values of a run's client hosts from their recordings."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TypeVar

from cli.errors import CasstatError
from cli.recordings.run_defaults import clocks_of
from cli.runs.ssh.ssh_address import SshAddressError, labels_of, parse_ssh_address
from collector.merge.grid import SpanGrid
from collector.merge.merge import merge
from collector.merge.merge_job import Job, NodeResult, NodeRun
from collector.merge.recordings import recordings, sessions
from collector.model.metric import Series
from collector.runs.run import ClientHost, Run, RunPhase
from exporters.results.summary.phase_summary import (
    CLIENT_NEEDS,
    ClientHostInterval,
    Peak,
    PhaseSummary,
    client_intervals,
    client_peaks,
)

Product = TypeVar("Product")


def with_client_peaks(folder: Path, run: Run, summaries: Sequence[PhaseSummary]) -> list[PhaseSummary]:
    """Return a run's summaries with the highest values of the client hosts.

    The last summary may be a total, which overlaps the others. Raises CasstatError and TooManySeriesError.
    """
    peaks = [*client_peaks_of(folder, run, summaries[:-1]), *client_peaks_of(folder, run, summaries[-1:])]
    return [replace(summary, client_peaks=of_phase) for summary, of_phase in zip(summaries, peaks, strict=True)]


def client_peaks_of(folder: Path, run: Run, phases: Sequence[RunPhase | PhaseSummary]) -> list[dict[str, Peak]]:
    """Return the highest values of the client hosts in each phase; `phases` must be in order and not overlap.

    Raises CasstatError and TooManySeriesError.
    """
    interval_s = max((host.interval_s for host in run.client_hosts if host.interval_s is not None), default=inf)
    grid = SpanGrid(interval_s, spans=tuple((phase.begin_s, phase.end_s) for phase in phases))
    intervals: list[list[tuple[str, float, ClientHostInterval]]] = [[] for _ in phases]
    for node in merged_client_hosts(folder, run, grid, CLIENT_NEEDS, client_intervals):
        for interval in node.product:
            intervals[grid.span_of(interval.index)].append((node.node, grid.end_of(interval.index), interval))
    return [client_peaks(in_phase) for in_phase in intervals]


def merged_client_hosts(
    folder: Path, run: Run, grid: SpanGrid, needs: frozenset[str | Series], make: Callable[[NodeRun], Product]
) -> Sequence[NodeResult[Product]]:
    """Return the result of `make` for each client host with a recording; `needs` are the metrics that it needs.

    Raises CasstatError and TooManySeriesError.
    """
    labels = _labels(run.client_hosts)
    hosts = {label: host for label, host in zip(labels, run.client_hosts, strict=True) if host.folder}
    if not hosts or not grid.spans:
        return []
    try:
        # The sessions of hosts with the same name must not be combined, so they get the hosts' labels.
        host_recordings, _ = recordings(
            [
                replace(session, node=label)
                for label, host in hosts.items()
                for session in sessions([folder / host.folder])[0]
            ]
        )
        clocks = clocks_of(folder, run, host_recordings)
        return merge(host_recordings, Job(grid, clocks, needs, make)).nodes
    except OSError as error:
        raise CasstatError(f"{error.filename}: {error.strerror}") from None


def _labels(hosts: Sequence[ClientHost]) -> list[str]:
    """Return the hosts' names or, if two hosts have the same name, labels for their addresses. Raises CasstatError."""
    names = [host.name for host in hosts]
    if len(set(names)) == len(names):
        return names
    try:
        return labels_of([parse_ssh_address(host.address) for host in hosts])
    except SshAddressError as error:
        raise CasstatError(str(error)) from None
