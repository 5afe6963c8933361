"""The summary of a completed run: its nodes, their settings, its client hosts and its client results."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import floor, inf
from pathlib import Path
from typing import TypeVar

import click

from cli.errors import CasstatError, note
from cli.parameters.recording_options import memory_limit
from cli.parameters.ssh_address import SshAddressError, labels_of, parse_ssh_address
from cli.recordings.merge_options import MergeSettings
from cli.recordings.merge_program import NoDataError, merged
from cli.recordings.recording_arguments import clocks_of, nodes_without_recording, read_run_in, results_in
from collector.file_access import file_errors
from collector.merge.coverage import NodeCoverage, coverage_of, not_recorded
from collector.merge.grid import ClusterSample, SpanGrid
from collector.merge.merge import merge
from collector.merge.merge_job import Job, Merged, NodeResult, NodeRun
from collector.merge.node_settings import NEEDS as SETTING_NEEDS
from collector.merge.node_settings import NodeSettings, settings_of
from collector.merge.recordings import recordings, sessions
from collector.model.metric import Series
from collector.model.sample import Sample
from collector.model.snapshot import NEVER
from collector.recording.header import MAX_MEMORY_BYTES
from collector.runs.run import TOTAL, ClientHost, Run, RunCondition, RunNode, RunPhase
from exporters.results.comparison.run_settings import RunSettings, settings_texts
from exporters.results.summary.client_values import with_client_values
from exporters.results.summary.conditions import condition_of
from exporters.results.summary.phase_summary import (
    CLIENT_NEEDS,
    NEEDS,
    ClientHostInterval,
    Peak,
    PhaseSummary,
    client_intervals,
    client_peaks,
    coverage_cells,
    incomplete_nodes,
    peak_rows,
    peaks_of,
    phase_values,
    with_error_share,
)
from exporters.rows.merged_rows import Choice, Row

_NO_SAMPLE = ClusterSample(Sample("", NEVER, {}, {}), 0)
Result = TypeVar("Result")
Product = TypeVar("Product")


@dataclass(frozen=True)
class RunSummary:
    """The summary of a run.

    phases  the summaries of its phases.
    lost    a lower bound on the number of ticks lost in the phases, by node.
    gaps    the nodes with missing intervals in the whole run, including the warm-up and the cool-down.
    same    the names of the run's nodes that are one node, which several agents recorded.

    The last phase has the settings of the run and its nodes.
    """

    phases: list[PhaseSummary]
    lost: Mapping[str, int]
    gaps: tuple[NodeCoverage, ...] = ()
    same: tuple[tuple[str, ...], ...] = ()


def summary_of(folder: Path, run: Run) -> RunSummary:
    """Return the summaries of the measured phases, followed by their total if there are several.

    A summary covers the ticks whose intervals lie completely inside its phase. A run without phases is summarised as a
    whole. Phases that are too short to contain a complete interval are left out; a phase in which no node was sampled
    has a summary without values. Raises CasstatError and click.UsageError.
    """
    phases = measured_phases(run)
    summary = _summary(folder, run, phases)
    if len(phases) < 2 or not summary.phases:
        return summary
    total = _summary(folder, run, [RunPhase(TOTAL, phases[0].begin_s, phases[-1].end_s)])
    return RunSummary([*summary.phases, *total.phases], total.lost, summary.gaps, summary.same)


def measured_phases(run: Run) -> list[RunPhase]:
    """Return the measured phases, or the whole run if it has no phases."""
    if run.phases:
        return [phase for phase in run.phases if phase.measured]
    end_s = max((node.end_s for node in run.nodes if node.end_s is not None), default=run.begin_s)
    return [RunPhase(TOTAL, run.begin_s, end_s if run.end_s is None else run.end_s)]


def _summary(folder: Path, run: Run, phases: Sequence[RunPhase]) -> RunSummary:
    """Return the summary of `phases`, which must be in order and must not overlap. Raises CasstatError."""
    if not phases:
        return RunSummary([], {})
    spans = tuple((phase.begin_s, phase.end_s) for phase in phases)
    interval_s = max((node.interval_s for node in run.nodes if node.interval_s is not None), default=inf)
    grid = SpanGrid(interval_s, spans=spans)
    settings = MergeSettings((folder,))
    make = partial(node_coverage, (*spans, _whole(run, phases)))
    whole, choice = merged(settings, make, NEEDS, grid=SpanGrid(inf, spans=spans), quiet=True, may_be_empty=True)
    peaks, _ = merged(settings, node_peaks, SETTING_NEEDS, grid=grid, quiet=True, may_be_empty=True)
    rows: dict[int, list[tuple[str, float, Row]]] = {}
    for node in peaks.nodes:
        for index, row in node.product[0]:
            rows.setdefault(grid.span_of(index), []).append((node.node, grid.end_of(index), row))
    *coverages, in_run = run_coverage(folder, run, whole, (*spans, _whole(run, phases)))
    clusters = [whole.cluster.get(number, _NO_SAMPLE) for number in range(len(phases))]
    summaries = [
        PhaseSummary(
            phase.name,
            phase.begin_s,
            phase.end_s,
            {
                **phase_values(choice, clusters[number], len(whole.nodes)),
                **coverage_cells(coverages[number], clusters[number].answered, run.nodes_unrecorded),
                "time": phase.end_s,
            },
            peaks_of(rows.get(number, [])),
            incomplete=incomplete_nodes(coverages[number]),
        )
        for number, phase in enumerate(phases)
        if number in whole.cluster or any(node.intervals for node in coverages[number])
    ]
    of_run = RunSettings(run, {node.node: node.product[1] for node in peaks.nodes})
    summaries[-1:] = [replace(last, settings=settings_texts(of_run)) for last in summaries[-1:]]
    lengths_s = [phase.end_s - phase.begin_s for phase in phases]
    return RunSummary(
        summaries,
        {node.node: max(node.missed, _missing(node.head.interval_s, node.ticks, lengths_s)) for node in peaks.nodes},
        incomplete_nodes(in_run),
        tuple(_same_nodes(folder, run, whole)),
    )


def _whole(run: Run, phases: Sequence[RunPhase]) -> tuple[float, float]:
    """Return the time range of a run; `phases` are those that are measured."""
    return run.begin_s, phases[-1].end_s if run.end_s is None else run.end_s


def node_coverage(spans: Sequence[tuple[float, float]], _choice: Choice, node: NodeRun) -> list[NodeCoverage]:
    """Return a node's coverage of each time range; merges can call it in another process."""
    return coverage_of(node.node, node.ticks, spans, paced=node.head.paced)


def node_peaks(choice: Choice, node: NodeRun) -> tuple[list[tuple[int, Row]], NodeSettings]:
    """Return a node's columns with peaks, by interval, and its settings; merges can call it in another process."""
    return peak_rows(choice, node), settings_of(node)


def run_coverage(
    folder: Path, run: Run, whole: Merged[list[NodeCoverage]], spans: Sequence[tuple[float, float]]
) -> list[list[NodeCoverage]]:
    """Return the coverage of each time range by all nodes of the run, given a merge of `node_coverage`.

    A node whose interval is unknown lacks as many intervals as one with the run's longest interval.
    """
    absent = nodes_without_recording(folder, run, whole.folders)
    interval_s = max((node.interval_s for node in run.nodes if node.interval_s is not None), default=None)
    coverages = []
    for number, span in enumerate(spans):
        recorded = [node.product[number] for node in whole.nodes]
        coverages.append([*recorded, *(_absent(node, interval_s, span, recorded) for node in absent)])
    return coverages


def _absent(
    node: RunNode, longest_s: float | None, span: tuple[float, float], recorded: Sequence[NodeCoverage]
) -> NodeCoverage:
    """Return the coverage of a node without a recording, with as many intervals as recorded nodes like it have."""
    problem = node.problem or "no ticks were recorded"
    coverage = not_recorded(node.name or node.address, node.interval_s or longest_s, span, problem)
    alike = [other.intervals for other in recorded if other.interval_s == coverage.interval_s]
    intervals = max(alike, default=coverage.intervals)
    return replace(coverage, intervals=intervals, missing=intervals)


def _same_nodes(folder: Path, run: Run, whole: Merged[list[NodeCoverage]]) -> Iterator[tuple[str, ...]]:
    """Yield the names of nodes of the run that are one node; a name occurs once for each of its agents."""
    for node in whole.nodes:
        paths = {path.resolve() for path in whole.folders[node.node]}
        names = [other.name for other in run.nodes if other.folder and (folder / other.folder).resolve() in paths]
        # Without a process, nodes of the same name cannot be distinguished.
        if len(names) > 1 and node.head.process:
            yield tuple(names)


def _missing(interval_s: float, ticks: int, lengths_s: Iterable[float]) -> int:
    """Return the minimum number of ticks that are missing, for any reason, in phases of the given lengths.

    If n intervals fit into the length of a phase, the phase contains at least n - 1 complete intervals.
    """
    return max(0, sum(max(0, floor(length_s / interval_s) - 1) for length_s in lengths_s) - ticks)


def attempt(step: Callable[[], Result]) -> Result | None:
    """Return the result of a step; if it fails or needs too much memory, print the error and return None."""
    try:
        with memory_limit(MAX_MEMORY_BYTES):
            return step()
    except (CasstatError, click.ClickException) as error:
        note(error.format_message() if isinstance(error, click.ClickException) else str(error))
        return None


def completed_summary(folder: Path, run: Run) -> RunSummary | None:
    """Return the run's summary, or None if it cannot be computed.

    Values of client hosts and client results that cannot be read are left out.
    """
    summary = attempt(lambda: summary_of(folder, run))
    if summary is None:
        return None
    phases = attempt(lambda: _with_client_peaks(folder, run, summary.phases)) or summary.phases
    phases = attempt(lambda: with_client_values(phases, results_in(folder))) or phases
    return replace(summary, phases=with_error_share(phases))


def with_checked_conditions(run: Run, summary: RunSummary | None) -> Run:
    """Return the run with the results of its conditions; a condition that this version cannot parse is unchanged."""
    summaries = summary.phases if summary else []
    return replace(run, conditions=tuple(_checked(condition, summaries) for condition in run.conditions))


def _checked(condition: RunCondition, summaries: Sequence[PhaseSummary]) -> RunCondition:
    try:
        reasons = tuple(condition_of(condition.text).failures(summaries))
    except ValueError:
        return condition
    return replace(condition, met=bool(reasons), reasons=reasons)


def _with_client_peaks(folder: Path, run: Run, summaries: Sequence[PhaseSummary]) -> list[PhaseSummary]:
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
    with file_errors(folder, CasstatError):
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


def _labels(hosts: Sequence[ClientHost]) -> list[str]:
    """Return the hosts' names or, if two hosts have the same name, labels for their addresses. Raises CasstatError."""
    names = [host.name for host in hosts]
    if len(set(names)) == len(names):
        return names
    try:
        return labels_of([parse_ssh_address(host.address) for host in hosts])
    except SshAddressError as error:
        raise CasstatError(str(error)) from None


def run_settings(folder: Path) -> RunSettings:
    """Return the settings of a run in a directory. Raises CasstatError and click.UsageError."""
    run = read_run_in(folder)
    if run.end_s is None:
        raise CasstatError(f"{folder}: the run has not ended (hint: run 'casstat fetch --recover {folder}')")
    grid = SpanGrid(inf, spans=((run.begin_s, run.end_s),))
    try:
        result, _ = merged(MergeSettings((folder,)), node_settings, SETTING_NEEDS, grid=grid, quiet=True)
    except NoDataError as error:
        raise CasstatError(f"{folder}: {error}") from None
    return RunSettings(run, {node.node: node.product for node in result.nodes})


def node_settings(_: object, node: NodeRun) -> NodeSettings:
    """Return a node's settings; merges can call it in another process."""
    return settings_of(node)
