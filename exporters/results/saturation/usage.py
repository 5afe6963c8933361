"""The use of nodes and client hosts: their measures in each interval, from merged recordings."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from math import isnan, nan

from collector.merge.grid import SpanGrid
from collector.merge.merge_job import NodeRun
from collector.model.metric import Series
from collector.model.snapshot import WATCHED, Event, Rate, Sample
from collector.node.host.busy_processes import CPU_TIME, CPUS, THREAD_CPU_TIME
from collector.node.host.network import SPEED
from collector.node.host.process import ALLOWED_CPUS
from collector.node.log.log_events import collection_s
from collector.node.metrics.jvm import counts_pauses
from exporters.results.saturation.saturation import (
    BY_PROCESSOR,
    BYTES,
    CPU_LIMIT,
    PROCESS_CPU,
    QUEUED,
    TABLE_OPERATIONS,
    Interval,
    Loads,
    table_operations,
)
from exporters.rows.columns import cell_number, number, per_s, sum_of_known
from exporters.rows.merged_rows import table_of
from exporters.rows.operation_columns import Operations
from exporters.rows.row_files import node_cells

_NETWORK_SPEED: Series = (SPEED.name, WATCHED)
_CPU = "process_cpu"
# The measures that are columns of a row, with the factors that convert the columns to the measures' units.
_COLUMNS = {
    "gc_share": ("gc_pct", 0.01),
    "disk_util": ("disk_util_pct", 0.01),
    "io_waiting": ("pressure_io_pct", 0.01),
    "cpu_waiting": ("pressure_cpu_pct", 0.01),
    "compactions_pending": ("compactions_pending", 1.0),
}
_PENDING = ("native_transport_pending", "read_stage_pending", "mutation_stage_pending")
_AWAITS = ("disk_read_await_ms", "disk_write_await_ms")
# A process that uses this much CPU time per second, in seconds, is neither stopped nor waiting for requests.
_MIN_WORK = 0.1
_GC_TIME = "cassandra_jvm_gc_seconds_total"
_Span = tuple[float, float]
NODE_COLUMNS = (*(column for column, _ in _COLUMNS.values()), *_PENDING, *_AWAITS)
"""The columns that `node_usage` needs."""
_NETWORK: frozenset[str | Series] = frozenset((_NETWORK_SPEED, *((name, WATCHED) for name in BYTES)))
NODE_NEEDS = _NETWORK | {BY_PROCESSOR, *PROCESS_CPU, CPU_LIMIT, ALLOWED_CPUS.name, TABLE_OPERATIONS, _GC_TIME}
"""The metrics that `node_usage` needs in addition to those of its columns."""
CLIENT_COLUMNS = ("cpu_busy_pct",)
"""The columns that `client_usage` needs."""
CLIENT_NEEDS = _NETWORK | {CPU_TIME.name, CPUS.name, THREAD_CPU_TIME.name}
"""The metrics that `client_usage` needs in addition to those of its columns."""


def node_usage(grid: SpanGrid, operations: Operations, node: NodeRun) -> dict[int, Interval]:
    """Return a node's measures and the operations on its tables, by interval."""
    # Imported here because recording does not need numpy.
    from exporters.results.saturation.node_measures import node_measures

    measures = node_measures(node.columns)
    silent_gc = {} if all(measures.answered) else silent_gc_shares(grid, node)
    by_table = [table_operations(each.sample) for each in node.columns.intervals({TABLE_OPERATIONS}).values()]
    usage: dict[int, Interval] = {}
    for position, (index, row) in enumerate(node_cells(table_of(operations), node, NODE_COLUMNS)):
        values = {
            measure: factor * value
            for measure, (column, factor) in _COLUMNS.items()
            if (value := cell_number(row.get(column))) is not None
        }
        process_cpu = measures.process_cpu[position]
        if node.head.sources:
            values["unanswered"] = float(not measures.answered[position])
        if not isnan(process_cpu):
            values["process_idle"] = float(process_cpu < _MIN_WORK)
        if index in silent_gc:
            values["gc_share"] = silent_gc[index]
        known = {
            "network_used": measures.network_used[position],
            "cpu_busy": measures.cpu_busy[position],
            "disk_await_ms": max(
                (await_ms for column in _AWAITS if (await_ms := cell_number(row.get(column)))), default=nan
            ),
            _CPU: process_cpu,
            QUEUED: sum_of_known(cell_number(row.get(column)) for column in _PENDING),
        }
        loads = values | {name: value for name, value in known.items() if value is not None and not isnan(value)}
        usage[index] = Interval(grid.end_of(index), loads, by_table[position])
    return usage


def with_cpu_ratios(nodes: Mapping[str, Mapping[int, Interval]]) -> dict[str, dict[int, Interval]]:
    """Add the ratio of a node's CPU time to the mean of all nodes to each interval in which all are known."""
    known: dict[int, list[float]] = {}
    for intervals in nodes.values():
        for index, interval in intervals.items():
            if _CPU in interval.loads:
                known.setdefault(index, []).append(interval.loads[_CPU])
    totals = {index: sum(cpus) for index, cpus in known.items() if len(cpus) == len(nodes) and any(cpus)}

    def with_ratio(index: int, interval: Interval) -> Interval:
        if index not in totals:
            return interval
        ratio = interval.loads[_CPU] * len(nodes) / totals[index]
        return replace(interval, loads={**interval.loads, "cpu_ratio": ratio})

    return {
        node: {index: with_ratio(index, interval) for index, interval in intervals.items()}
        for node, intervals in nodes.items()
    }


def _network_load(sample: Sample) -> dict[str, float]:
    """Return the share of the watched interface's capacity that the busier direction used; {} if it is unknown."""
    speed = number(sample, _NETWORK_SPEED)
    rates = [rate for name in BYTES if (rate := per_s(sample, (name, WATCHED))) is not None]
    return {"network_used": max(rates) / speed} if speed and rates else {}


def silent_gc_shares(grid: SpanGrid, node: NodeRun) -> dict[int, float]:
    """Return the share of the time in garbage collection pauses, for each interval without an answer where it is known.

    The collectors' times at the next answer cover the time since the previous one. Before the last answer, they are
    complete; after it, only the collections in the node's log are known.
    """
    spans = {index: _span(grid, index) for index in sorted(node.intervals)}
    silent = [index for index in spans if not node.answered(node.intervals[index].sample)]
    if not silent:
        return {}
    logged = [span for interval in node.intervals.values() for span in _collections(interval.sample.events)]
    shares = {index: _overlap_s(spans[index], logged) / _length_s(spans[index]) for index in silent} if logged else {}
    for index, (_, end_s) in spans.items():
        rates = _gc_rates(node, index)
        elapsed_s = max((rate.elapsed_s for rate in rates), default=0.0)
        for earlier in silent:
            begin_s, earlier_end_s = spans[earlier]
            # An interval is covered if its middle is.
            if end_s - elapsed_s < (begin_s + earlier_end_s) / 2 < end_s:
                shares[earlier] = sum(rate.per_s for rate in rates)
    return shares


def _span(grid: SpanGrid, index: int) -> _Span:
    end_s = grid.end_of(index)
    return max(end_s - grid.interval_s, grid.spans[grid.span_of(index)][0]), end_s


def _length_s(span: _Span) -> float:
    return span[1] - span[0]


def _gc_rates(node: NodeRun, index: int) -> list[Rate]:
    values: Mapping[tuple[str, ...], object] = node.intervals[index].sample.values
    return [
        rate
        for series, rate in values.items()
        if series[0] == _GC_TIME and isinstance(rate, Rate) and counts_pauses(series)
    ]


def _collections(events: Iterable[Event]) -> list[_Span]:
    """Return the beginnings and ends of the collections in a node's log."""
    durations = ((event.time_s, collection_s(event.kind, event.text)) for event in events)
    return [(end_s - length_s, end_s) for end_s, length_s in durations if end_s is not None and length_s is not None]


def _overlap_s(span: _Span, collections: Iterable[_Span]) -> float:
    total_s = sum(max(min(span[1], end_s) - max(span[0], begin_s), 0.0) for begin_s, end_s in collections)
    return min(total_s, _length_s(span))


@dataclass(frozen=True)
class ClientUsage:
    """The use of a client host's processors and network in one interval; a share that is unknown is absent.

    total      the share of all processors that was used.
    processes  the share of the processors that each process may use, by PID; None if one of these numbers is unknown.
    threads    the share of one processor that the busiest thread of a process used, by PID.
    network    the result of `_network_load`.
    """

    total: float | None
    processes: Mapping[str, float] | None
    threads: Mapping[str, float]
    network: Loads


def client_usage(operations: Operations, host: NodeRun) -> tuple[str, dict[int, ClientUsage]]:
    """Return a client host's boot id and its usage by interval."""
    usage = {}
    for index, row in node_cells(table_of(operations), host, CLIENT_COLUMNS):
        sample = host.intervals[index].sample
        busy_pct = row.get("cpu_busy_pct")
        total = busy_pct / 100 if isinstance(busy_pct, int | float) else None
        usage[index] = ClientUsage(total, _processes(sample), _threads(sample), _network_load(sample))
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
