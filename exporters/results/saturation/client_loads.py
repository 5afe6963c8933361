"""The measures of client hosts in each interval, from merged recordings."""

from collections.abc import Mapping, Set
from dataclasses import dataclass

from collector.merge.merge_job import NodeRun
from collector.model.metric import Series
from collector.model.sample import Rate, Sample
from collector.node.host.busy_processes import CPU_TIME, CPUS, THREAD_CPU_TIME
from exporters.results.saturation.network_load import NETWORK_SPEED, network_load
from exporters.results.saturation.resources import Loads
from exporters.rows.formulas import number
from exporters.rows.merged_rows import Choice, table_of

CLIENT_NEEDS: frozenset[str | Series] = table_of(Choice()).needs | {
    CPU_TIME.name,
    CPUS.name,
    THREAD_CPU_TIME.name,
    NETWORK_SPEED,
}
"""The metrics that `client_usage` needs."""


@dataclass(frozen=True)
class ClientUsage:
    """The use of a client host's processors and network in one interval; a share that is unknown is absent.

    total      the share of all processors that was used.
    processes  the share of the processors that each process may use, by PID; None if one of these numbers is unknown.
    threads    the share of one processor that the busiest thread of a process used, by PID.
    network    the result of `network_load`.
    """

    total: float | None
    processes: Mapping[str, float] | None
    threads: Mapping[str, float]
    network: Loads


def client_usage(host: NodeRun) -> tuple[str, dict[int, ClientUsage]]:
    """Return a client host's boot id and its usage by interval."""
    usage = {}
    for index, row in table_of(Choice()).node_rows(host):
        sample = host.intervals[index].sample
        busy_pct = row.get("cpu_busy_pct")
        total = busy_pct / 100 if isinstance(busy_pct, int | float) else None
        usage[index] = ClientUsage(total, _processes(sample), _threads(sample), network_load(sample))
    return host.head.boot, usage


def client_loads(usage: ClientUsage, node_pids: Set[str]) -> Loads:
    """Return the measures of a client host in one interval.

    `node_pids` are the PIDs of the Cassandra nodes on the same machine, which are not load generators, "" for a node
    whose PID is unknown. If there are any nodes, the processors of the machine as a whole do not count either.
    """
    loads = dict(usage.network)
    if "" in node_pids:
        return loads
    if usage.processes is not None and (usage.processes or usage.total is not None):
        shares = [share for pid, share in usage.processes.items() if pid not in node_pids]
        total = [usage.total] if usage.total is not None and not node_pids else []
        loads["generator_cpu"] = max([*shares, *total], default=0.0)
    threads = [share for pid, share in usage.threads.items() if pid not in node_pids]
    if threads:
        loads["generator_thread"] = max(threads)
    return loads


def _processes(sample: Sample) -> dict[str, float] | None:
    used_s = {
        series[1:]: value.per_s
        for series, value in sample.values.items()
        if series[0] == CPU_TIME.name and len(series) == 3 and isinstance(value, Rate)
    }
    cpus = {process: number(sample, (CPUS.name, *process)) for process in used_s}
    shares = {process[1]: used_s[process] / count for process, count in cpus.items() if count}
    return shares if all(cpus.values()) else None


def _threads(sample: Sample) -> dict[str, float]:
    """Return the share of a processor that the busiest thread of each process used, by PID.

    In a long interval, several threads may have been the busiest one, each for a part of the interval.
    """
    used_s: dict[str, float] = {}
    elapsed_s: dict[str, float] = {}
    for series, value in sample.values.items():
        if series[0] == THREAD_CPU_TIME.name and len(series) == 5 and isinstance(value, Rate):
            pid = series[2]
            used_s[pid] = used_s.get(pid, 0.0) + value.increase
            elapsed_s[pid] = elapsed_s.get(pid, 0.0) + value.elapsed_s
    return {pid: used_s[pid] / elapsed_s[pid] for pid in used_s}
