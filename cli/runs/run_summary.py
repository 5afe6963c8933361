"""Computes the summaries of a run's phases from the recordings of its nodes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import floor, inf
from pathlib import Path

from cli.recordings.merge_options import MergeSettings
from cli.recordings.merge_program import merged
from cli.recordings.run_defaults import nodes_without_recording
from collector.merge.coverage import NodeCoverage, coverage_of, not_recorded
from collector.merge.grid import ClusterSample, SpanGrid
from collector.merge.merge_job import Merged, NodeRun
from collector.merge.node_settings import NEEDS as SETTING_NEEDS
from collector.merge.node_settings import NodeSettings, settings_of
from collector.model.sample import Sample
from collector.model.snapshot import NEVER
from collector.runs.run import TOTAL, Run, RunNode, RunPhase
from exporters.results.comparison.run_settings import RunSettings, settings_texts
from exporters.results.summary.phase_summary import (
    NEEDS,
    PhaseSummary,
    coverage_cells,
    incomplete_nodes,
    peak_rows,
    peaks_of,
    phase_values,
)
from exporters.rows.merged_rows import Choice, Row

_NO_SAMPLE = ClusterSample(Sample("", NEVER, {}, {}), 0)


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
