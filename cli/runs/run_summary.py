"""The summary of a completed run: its nodes, their settings, its client hosts and its client results.

A file in the run's directory has the summaries of its phases.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import floor, inf
from pathlib import Path
from typing import TypeVar

import click
import msgspec

from cli.errors import CasstatError, note
from cli.parameters.recording_options import memory_limit
from cli.recordings.recording_arguments import nodes_without_recording, results_in
from cli.recordings.views import NoDataError, Step, View, begun
from cli.run_folder import recovery_hint
from cli.runs.run_views import RunViews
from collector.file_access import read_whole, write_json
from collector.merge.coverage import NodeCoverage, coverage_of, not_recorded
from collector.merge.grid import ClusterSample, SpanGrid
from collector.merge.merge_job import Merged, NodeRun
from collector.merge.node_settings import NEEDS as SETTING_NEEDS
from collector.merge.node_settings import NodeSettings, settings_of
from collector.model.snapshot import NEVER, Sample
from collector.recording.header import MAX_MEMORY_BYTES
from collector.runs.run import TOTAL, Run, RunCondition, RunNode, RunPhase
from collector.runs.run_file import is_finite
from exporters.results.comparison.run_settings import RunSettings, settings_texts
from exporters.results.summary import phase_summary
from exporters.results.summary.client_values import with_client_values
from exporters.results.summary.conditions import condition_of
from exporters.results.summary.phase_summary import PEAKS, ClientHostInterval, Peak, PhaseSummary
from exporters.rows.merged_rows import Row, table_of
from exporters.rows.operation_columns import Operations
from exporters.rows.row_files import node_cells

SUMMARY_FILE = "summary.json"
MAX_SUMMARY_BYTES = 16 << 20


def write_summaries(folder: Path, summaries: Sequence[PhaseSummary]) -> None:
    """Write the summaries of a run's phases to its directory. Raises OSError."""
    write_json(folder / SUMMARY_FILE, [asdict(summary) for summary in summaries])


def read_summaries(folder: Path) -> list[PhaseSummary]:
    """Return the summaries of a run's phases; none if they are missing or malformed."""
    try:
        content = json.loads(read_whole(folder / SUMMARY_FILE, MAX_SUMMARY_BYTES))
        # Earlier versions wrote neither client hosts nor missing intervals. A count may be 60.0.
        summaries = msgspec.convert(content, list[PhaseSummary], strict=False)
    except (OSError, ValueError, RecursionError):
        return []
    cells = [cell for summary in summaries for cell in summary.values.values()]
    return summaries if all(cell is None or isinstance(cell, str) or is_finite(cell) for cell in cells) else []


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


def summary_of(views: RunViews) -> Step[RunSummary]:
    """Return the summaries of the measured phases, followed by their total if there are several.

    A summary covers the ticks whose intervals lie completely inside its phase. A run without phases is summarised as a
    whole. Phases that are too short to contain a complete interval are left out; a phase in which no node was sampled
    has a summary without values. Raises CasstatError and click.UsageError.
    """
    of_phases, *of_total = [begun(_summary(views, phases)) for phases in _summarised(measured_phases(views.run))]
    yield
    summary = of_phases()
    if not of_total or not summary.phases:
        return summary
    total = of_total[0]()
    return RunSummary([*summary.phases, *total.phases], total.lost, summary.gaps, summary.same)


def _summarised(phases: Sequence[RunPhase]) -> list[Sequence[RunPhase]]:
    """Return the phases and, if there are several, their total, which overlaps them."""
    return [phases, [RunPhase(TOTAL, phases[0].begin_s, phases[-1].end_s)]] if len(phases) > 1 else [phases]


def measured_phases(run: Run) -> list[RunPhase]:
    """Return the measured phases, or the whole run if it has no phases."""
    if run.phases:
        return [phase for phase in run.phases if phase.measured]
    end_s = max((node.end_s for node in run.nodes if node.end_s is not None), default=run.begin_s)
    return [RunPhase(TOTAL, run.begin_s, end_s if run.end_s is None else run.end_s)]


def _summary(views: RunViews, phases: Sequence[RunPhase]) -> Step[RunSummary]:
    """Return the summary of `phases`, which must be in order and must not overlap. Raises CasstatError."""
    folder, run = views.folder, views.run
    if not phases:
        yield
        return RunSummary([], {})
    spans = tuple((phase.begin_s, phase.end_s) for phase in phases)
    interval_s = max((node.interval_s for node in run.nodes if node.interval_s is not None), default=inf)
    grid = SpanGrid(interval_s, spans=spans)
    make = partial(node_coverage, (*spans, _whole(run, phases)))
    of_phases = View(views.nodes, make, phase_summary.NEEDS, SpanGrid(inf, spans=spans), may_be_empty=True)
    of_intervals = View(
        views.nodes, partial(node_peaks, grid), SETTING_NEEDS, grid, columns=PEAKS, may_be_empty=True, has_cluster=False
    )
    yield
    whole, operations = of_phases.merged()
    peaks, _ = of_intervals.merged()
    *coverages, in_run = run_coverage(folder, run, whole, (*spans, _whole(run, phases)))
    clusters = [whole.cluster.get(number, _NO_SAMPLE) for number in range(len(phases))]
    summaries = [
        PhaseSummary(
            phase.name,
            phase.begin_s,
            phase.end_s,
            {
                **phase_summary.phase_values(operations, clusters[number], len(whole.nodes)),
                **phase_summary.coverage_cells(coverages[number], clusters[number].answered, run.nodes_unrecorded),
                "time": phase.end_s,
            },
            phase_summary.highest(node.product[0].get(number, {}) for node in peaks.nodes),
            incomplete=phase_summary.incomplete_nodes(coverages[number]),
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
        phase_summary.incomplete_nodes(in_run),
        tuple(_same_nodes(folder, run, whole)),
    )


def _whole(run: Run, phases: Sequence[RunPhase]) -> tuple[float, float]:
    """Return the time range of a run; `phases` are those that are measured."""
    return run.begin_s, phases[-1].end_s if run.end_s is None else run.end_s


def node_coverage(spans: Sequence[tuple[float, float]], _operations: Operations, node: NodeRun) -> list[NodeCoverage]:
    """Return a node's coverage of each time range; merges can call it in another process."""
    return coverage_of(node.node, node.columns.all_ticks, spans, paced=node.head.paced)


def node_peaks(
    grid: SpanGrid, operations: Operations, node: NodeRun
) -> tuple[dict[int, dict[str, Peak]], NodeSettings]:
    """Return a node's peaks in each span, and its settings; merges can call it in another process."""
    rows: dict[int, list[tuple[str, float, Row]]] = {}
    for index, row in node_cells(table_of(operations), node, PEAKS):
        rows.setdefault(grid.span_of(index), []).append((node.node, grid.end_of(index), row))
    return {span: phase_summary.peaks_of(of_span) for span, of_span in rows.items()}, settings_of(node)


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


def completed_summary(views: RunViews) -> Step[RunSummary]:
    """Return the run's summary. Raises CasstatError and click.UsageError.

    Values of client hosts and client results that cannot be read are left out.
    """
    host_peaks = [begun(client_peaks_of(views, phases)) for phases in _summarised(measured_phases(views.run))]
    summary = yield from summary_of(views)
    phases = attempt(lambda: _with_client_peaks(summary.phases, host_peaks)) or summary.phases
    phases = attempt(lambda: with_client_values(phases, results_in(views.folder))) or phases
    return replace(summary, phases=phase_summary.with_error_share(phases))


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


def _with_client_peaks(
    summaries: Sequence[PhaseSummary], host_peaks: "Sequence[Callable[[], PhasePeaks]]"
) -> list[PhaseSummary]:
    """Return the summaries with the highest values of the client hosts. Raises CasstatError and TooManySeriesError."""
    peaks = {limits_s: of_phase for of_phases in host_peaks for limits_s, of_phase in of_phases().items()}
    return [replace(summary, client_peaks=peaks.get((summary.begin_s, summary.end_s), {})) for summary in summaries]


PhasePeaks = Mapping[tuple[float, float], Mapping[str, Peak]]
"""The highest values in each phase, by the phase's beginning and end."""


def client_peaks_of(views: RunViews, phases: Sequence[RunPhase]) -> Step[PhasePeaks]:
    """Return the highest values of the client hosts in each phase; `phases` must be in order and not overlap.

    Raises CasstatError and TooManySeriesError.
    """
    hosts = views.run.client_hosts
    spans = tuple((phase.begin_s, phase.end_s) for phase in phases)
    if not spans or not any(host.folder for host in hosts):
        yield
        return {span: {} for span in spans}
    interval_s = max((host.interval_s for host in hosts if host.interval_s is not None), default=inf)
    grid = SpanGrid(interval_s, spans=spans)
    view = View(
        views.client_hosts,
        phase_summary.client_intervals,
        phase_summary.CLIENT_NEEDS,
        grid,
        columns=phase_summary.CLIENT_PEAKS,
        may_be_empty=True,
        has_cluster=False,
    )
    yield
    intervals: dict[tuple[float, float], list[tuple[str, float, ClientHostInterval]]] = {span: [] for span in spans}
    for node in view.merged()[0].nodes:
        for interval in node.product:
            span = spans[grid.span_of(interval.index)]
            intervals[span].append((node.node, grid.end_of(interval.index), interval))
    return {span: phase_summary.client_peaks(in_phase) for span, in_phase in intervals.items()}


def run_settings(views: RunViews) -> Step[RunSettings]:
    """Return the settings of a run. Raises CasstatError and click.UsageError."""
    folder, run = views.folder, views.run
    if run.end_s is None:
        raise CasstatError(f"{folder}: the run has not ended {recovery_hint(folder)}")
    view = View(views.nodes, node_settings, SETTING_NEEDS, SpanGrid(inf, spans=((run.begin_s, run.end_s),)))
    yield
    try:
        result, _ = view.merged()
    except NoDataError as error:
        raise CasstatError(f"{folder}: {error}") from None
    return RunSettings(run, {node.node: node.product for node in result.nodes})


def node_settings(_: object, node: NodeRun) -> NodeSettings:
    """Return a node's settings; merges can call it in another process."""
    return settings_of(node)
