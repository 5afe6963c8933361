"""Determines which resource limited a run from the recordings of its nodes and client hosts."""

from collections.abc import Mapping, Set
from functools import partial
from math import inf

from cli.errors import CasstatError
from cli.recordings.views import NoDataError, Step, View
from cli.runs.run_summary import measured_phases
from cli.runs.run_views import RunViews
from collector.merge.grid import SpanGrid
from exporters.results.saturation.saturation import Interval, Loads, Saturation, saturation
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
    of_clients = {} if of_hosts is None else _client_loads(of_hosts, machines)
    loads |= of_clients
    of_phases: list[dict[str, list[Interval]]] = [{name: [] for name in loads} for _ in phases]
    for name, by_index in loads.items():
        for index in sorted(by_index):
            interval = Interval(grid.end_of(index), by_index[index], operations.get((name, index), {}))
            of_phases[grid.span_of(index)][name].append(interval)
    return saturation(of_phases, of_clients.keys())


def _client_loads(
    view: View[tuple[str, dict[int, ClientUsage]]], node_pids: Mapping[str, Set[str]]
) -> dict[str, dict[int, Loads]]:
    """Return the measures of each client host by interval; {} if the recordings cannot be read.

    `node_pids` are the PIDs of the nodes, keyed by the boot id of their machine.
    """
    try:
        hosts = view.merged()[0].nodes
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
