"""Determines which resource limited a run from the recordings of its nodes and client hosts."""

from collections.abc import Mapping, Set
from functools import partial
from math import inf
from pathlib import Path

from cli.errors import CasstatError
from cli.recordings.merge_options import MergeSettings
from cli.recordings.merge_program import NoDataError, merged
from cli.runs.run_summary import measured_phases, merged_client_hosts
from collector.merge.grid import SpanGrid
from collector.runs.run import Run
from exporters.results.saturation.saturation import Interval, Loads, Saturation, saturation
from exporters.results.saturation.usage import (
    CLIENT_NEEDS,
    NODE_NEEDS,
    client_loads,
    client_usage,
    node_usage,
    with_cpu_ratios,
)

# Longer runs are analysed with longer intervals, which limits the memory use.
_MAX_INTERVALS = 1200


def saturation_of(folder: Path, run: Run) -> Saturation | None:
    """Return which resource was saturated first in the measured phases; None if they contain no data.

    Raises CasstatError, click.UsageError and TooManySeriesError.
    """
    phases = measured_phases(run)
    if not phases:
        return None
    recorded = [host.interval_s for host in (*run.nodes, *run.client_hosts) if host.interval_s is not None]
    length_s = phases[-1].end_s - phases[0].begin_s
    interval_s = max([*recorded, length_s / _MAX_INTERVALS], default=inf)
    grid = SpanGrid(interval_s, spans=tuple((phase.begin_s, phase.end_s) for phase in phases))
    try:
        nodes, _ = merged(MergeSettings((folder,)), partial(node_usage, grid), NODE_NEEDS, grid=grid, quiet=True)
    except NoDataError:
        return None
    usage = {node.node: node.product for node in nodes.nodes}
    loads = with_cpu_ratios(
        {name: {index: of_interval.loads for index, of_interval in node.items()} for name, node in usage.items()}
    )
    operations = {
        (name, index): of_interval.operations for name, node in usage.items() for index, of_interval in node.items()
    }
    # The machines on which nodes run, with the PIDs of the nodes.
    machines: dict[str, set[str]] = {}
    for node in nodes.nodes:
        machines.setdefault(node.head.boot, set()).add(node.head.process.partition("@")[0])
    of_clients = _client_loads(folder, run, grid, machines)
    loads |= of_clients
    of_phases: list[dict[str, list[Interval]]] = [{name: [] for name in loads} for _ in phases]
    for name, by_index in loads.items():
        for index in sorted(by_index):
            interval = Interval(grid.end_of(index), by_index[index], operations.get((name, index), {}))
            of_phases[grid.span_of(index)][name].append(interval)
    return saturation(of_phases, of_clients.keys())


def _client_loads(
    folder: Path, run: Run, grid: SpanGrid, node_pids: Mapping[str, Set[str]]
) -> dict[str, dict[int, Loads]]:
    """Return the measures of each client host by interval; {} if the recordings cannot be read.

    `node_pids` are the PIDs of the nodes, keyed by the boot id of their machine.
    """
    try:
        hosts = merged_client_hosts(folder, run, grid, CLIENT_NEEDS, client_usage)
    except CasstatError:
        # The summary of the run has already reported this error.
        return {}
    result: dict[str, dict[int, Loads]] = {}
    for host in hosts:
        boot, usage = host.product
        pids = node_pids.get(boot, set())
        result[f"client host {host.node}"] = {
            index: client_loads(of_interval, pids) for index, of_interval in usage.items()
        }
    return result
