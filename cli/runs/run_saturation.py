"""What limited a run: the resource that was saturated first, from the recordings of its nodes and client hosts.

Also reads what the nodes and the clients recorded in the run's phases, in intervals; requires numpy.
"""

from collections.abc import Mapping, Sequence, Set
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from cli.errors import CasstatError
from cli.recordings.recording_arguments import results_in
from cli.recordings.views import NoDataError, Step, View, Views
from cli.runs.run_summary import measured_phases, node_settings
from cli.runs.run_views import RunViews
from collector.merge.grid import ClusterSample, SpanGrid
from collector.printable import count_text
from collector.runs.run import RunPhase
from exporters.results.comparison.amounts import client_bins, known_nodes, latency_kinds, server_intervals
from exporters.results.comparison.comparison import PhaseData
from exporters.results.saturation.saturation import Interval, Saturation, saturation
from exporters.results.saturation.usage import (
    CLIENT_COLUMNS,
    CLIENT_NEEDS,
    NODE_COLUMNS,
    NODE_NEEDS,
    ClientUsage,
    client_loads,
    client_usage,
    node_usage,
    with_cpu_ratios,
)
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


# Longer runs are analysed with longer intervals, which limits the memory use.
_MAX_INTERVALS = 1200


def saturation_of(views: RunViews) -> Step[Saturation | None]:
    """Return which resource was saturated first in the measured phases; None if they contain no data.

    Raises CasstatError, click.UsageError and TooManySeriesError.
    """
    run = views.run
    phases = measured_phases(run)
    if not phases:
        yield
        return None
    recorded = [host.interval_s for host in (*run.nodes, *run.client_hosts) if host.interval_s is not None]
    length_s = phases[-1].end_s - phases[0].begin_s
    interval_s = max([*recorded, length_s / _MAX_INTERVALS], default=inf)
    grid = SpanGrid(interval_s, spans=tuple((phase.begin_s, phase.end_s) for phase in phases))
    of_nodes = View(views.nodes, partial(node_usage, grid), NODE_NEEDS, grid, columns=NODE_COLUMNS, has_cluster=False)
    of_hosts = None
    if any(host.folder for host in run.client_hosts):
        of_hosts = View(
            views.client_hosts,
            client_usage,
            CLIENT_NEEDS,
            grid,
            columns=CLIENT_COLUMNS,
            may_be_empty=True,
            has_cluster=False,
        )
    yield
    try:
        nodes, _ = of_nodes.merged()
    except NoDataError:
        return None
    usage = with_cpu_ratios({node.node: node.product for node in nodes.nodes})
    # The machines on which nodes run, with the PIDs of the nodes.
    machines: dict[str, set[str]] = {}
    for node in nodes.nodes:
        machines.setdefault(node.head.boot, set()).add(node.head.process.partition("@")[0])
    of_clients = {} if of_hosts is None else _client_intervals(grid, of_hosts, machines)
    usage |= of_clients
    of_phases: list[dict[str, list[Interval]]] = [{name: [] for name in usage} for _ in phases]
    for name, by_index in usage.items():
        for index in sorted(by_index):
            of_phases[grid.span_of(index)][name].append(by_index[index])
    return saturation(of_phases, of_clients.keys())


def _client_intervals(
    grid: SpanGrid, view: View[tuple[str, dict[int, ClientUsage]]], node_pids: Mapping[str, Set[str]]
) -> dict[str, dict[int, Interval]]:
    """Return the measures of each client host by interval; {} if the recordings cannot be read.

    `node_pids` are the PIDs of the nodes, keyed by the boot id of their machine.
    """
    try:
        hosts = view.merged()[0].nodes
    except CasstatError:
        # The summary of the run has already reported this error.
        return {}
    result: dict[str, dict[int, Interval]] = {}
    for host in hosts:
        boot, usage = host.product
        pids = node_pids.get(boot, set())
        result[f"client host {host.node}"] = {
            index: Interval(grid.end_of(index), client_loads(of_interval, pids)) for index, of_interval in usage.items()
        }
    return result
