"""Reads what the nodes and the clients of a run recorded in its phases, in intervals; requires numpy."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cli.recordings.recording_arguments import results_in
from cli.recordings.views import NoDataError, Step, View, Views
from cli.runs.run_summary import node_settings
from collector.merge.grid import ClusterSample, SpanGrid
from collector.printable import count_text
from collector.runs.run import RunPhase
from exporters.results.comparison.amounts import client_bins, known_nodes, latency_kinds, server_intervals
from exporters.results.comparison.comparison import PhaseData
from exporters.results.summary.client_values import client_values
from exporters.results.summary.phase_summary import NEEDS


def phase_data(
    views: Views, folder: Path, phases: Sequence[RunPhase], step_s: float, *, has_stated: bool
) -> Step[tuple[dict[str, PhaseData], dict[str, Any]]]:
    """Return the data of a run's phases by name in intervals of `step_s`, and the settings of each node by its name.

    `has_stated` selects whether the data include the percentiles that load generators state. Raises NoDataError if no
    node was sampled in the phases, other CasstatErrors and click.UsageError.
    """
    grid = SpanGrid(step_s, spans=tuple((phase.begin_s, phase.end_s) for phase in phases))
    view = View(views, node_settings, NEEDS, grid)
    yield
    try:
        run, choice = view.merged()
    except NoDataError as error:
        raise NoDataError(f"{folder}: {error}") from None
    # Results are loaded one run at a time, because those of all runs may not fit in memory.
    results = results_in(folder)
    kinds = latency_kinds(results)
    data: dict[str, PhaseData] = {}
    for number, phase in enumerate(phases):
        samples = {index: sample for index, sample in sorted(run.cluster.items()) if grid.span_of(index) == number}
        server = server_intervals(choice, [*samples.values()], len(run.nodes))
        data[phase.name] = PhaseData(
            server,
            {kind: client_bins(results, kind, phase.begin_s, phase.end_s, step_s) for kind in kinds},
            client_values(results, phase.begin_s, phase.end_s) if has_stated else {},
            _note(samples, len(server), len(run.nodes)),
        )
    return data, {node.node: node.product for node in run.nodes}


def _note(samples: Mapping[int, ClusterSample], used: int, nodes: int) -> str:
    """Return `PhaseData.note`, given the samples of a phase by interval, and the number of those that are used."""
    known = known_nodes(samples.values())
    intervals = max(samples) - min(samples) + 1 if samples else 0
    texts = [f"compares {used} of {count_text(intervals, 'interval')} of the nodes"] if used < intervals else []
    texts += [f"at most {known} of {count_text(nodes, 'node')} are known at a time"] if known < nodes else []
    why = "the operations of the others are unknown, or part of a later interval"
    return f"{', '.join(texts)}: {why}" if texts else ""
