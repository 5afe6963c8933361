"""The measures of nodes in each interval, from merged recordings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from collector.merge.grid import SpanGrid
from collector.merge.merge_job import NodeRun
from collector.model.metric import Series
from collector.model.sample import Rate, Sample
from collector.node.host.process import ALLOWED_CPUS, cpu_numbers
from exporters.results.saturation.hot_table import TABLE_OPERATIONS, Operations, table_operations
from exporters.results.saturation.network_load import NETWORK_SPEED, network_load
from exporters.results.saturation.resources import QUEUED, Loads
from exporters.results.saturation.silent_collections import silent_gc_shares
from exporters.rows.merged_rows import Choice, Row, table_of

_BY_PROCESSOR = "node_cpu_seconds_total"
_PROCESS_CPU = ("casstat_process_user_seconds_total", "casstat_process_system_seconds_total")
_CPU_LIMIT = "casstat_cgroup_cpu_limit"
_CPU = "process_cpu"
NODE_NEEDS: frozenset[str | Series] = frozenset(
    (_BY_PROCESSOR, *_PROCESS_CPU, _CPU_LIMIT, ALLOWED_CPUS.name, NETWORK_SPEED, TABLE_OPERATIONS)
)
"""The metrics that `node_usage` needs in addition to those of a merged row."""
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
_IDLE = ("idle", "iowait")
# A process that uses this much CPU time per second, in seconds, is neither stopped nor waiting for requests.
_MIN_WORK = 0.1


@dataclass(frozen=True)
class NodeUsage:
    """A node's measures and the operations on its tables, in one interval."""

    loads: Loads
    operations: Operations


def node_usage(grid: SpanGrid, choice: Choice, node: NodeRun) -> dict[int, NodeUsage]:
    """Return a node's usage by interval."""
    usage: dict[int, NodeUsage] = {}
    silent_gc = silent_gc_shares(grid, node)
    for index, row in table_of(choice).node_rows(node):
        sample = node.intervals[index].sample
        values = {
            measure: factor * value
            for measure, (column, factor) in _COLUMNS.items()
            if (value := _number(row, column)) is not None
        } | network_load(sample)
        process_cpu = _process_cpu(sample)
        if node.head.sources:
            values["unanswered"] = float(not node.answered(sample))
        if process_cpu is not None:
            values["process_idle"] = float(process_cpu < _MIN_WORK)
        if index in silent_gc:
            values["gc_share"] = silent_gc[index]
        known = {
            "cpu_busy": _cpu_busy(sample),
            "disk_await_ms": max((await_ms for column in _AWAITS if (await_ms := _number(row, column))), default=None),
            _CPU: process_cpu,
            QUEUED: _sum(_number(row, column) for column in _PENDING),
        }
        loads = values | {name: value for name, value in known.items() if value is not None}
        usage[index] = NodeUsage(loads, table_operations(sample))
    return usage


def with_cpu_ratios(nodes: Mapping[str, Mapping[int, Loads]]) -> dict[str, dict[int, Loads]]:
    """Add the ratio of a node's CPU time to the mean of all nodes to each interval in which all are known."""
    result: dict[str, dict[int, Loads]] = {}
    for node, intervals in nodes.items():
        result[node] = {}
        for index, loads in intervals.items():
            known = [other[index][_CPU] for other in nodes.values() if _CPU in other.get(index, {})]
            ratio = (
                {"cpu_ratio": loads[_CPU] * len(known) / sum(known)} if len(known) == len(nodes) and any(known) else {}
            )
            result[node][index] = {**loads, **ratio}
    return result


def _number(row: Row, column: str) -> float | None:
    value = row.get(column)
    return value if isinstance(value, int | float) else None


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _process_cpu(sample: Sample) -> float | None:
    """Return the CPU time per second of Cassandra's process, in seconds."""
    used = [value.per_s for name in _PROCESS_CPU if isinstance(value := sample.values.get((name,)), Rate)]
    return sum(used) if used else None


def _cpu_busy(sample: Sample) -> float | None:
    """Return the share of the CPU time available to Cassandra's process that is used, by it or by others.

    If the process has a CPU limit, the share of the limit that it uses also counts.
    """
    shares = [share for share in (_processors_busy(sample), _limit_used(sample)) if share is not None]
    return max(shares, default=None)


def _processors_busy(sample: Sample) -> float | None:
    """Return the busy share of the processors that Cassandra's process may use."""
    allowed = sample.values.get((ALLOWED_CPUS.name,))
    try:
        numbers = {str(number) for number in cpu_numbers(allowed)} if isinstance(allowed, str) else None
    except ValueError:
        return None
    total_s = busy_s = 0.0
    for series, value in sample.values.items():
        if series[0] != _BY_PROCESSOR or len(series) != 3 or not isinstance(value, Rate):
            continue
        if numbers is None or series[1] in numbers:
            total_s += value.increase
            busy_s += value.increase if series[2] not in _IDLE else 0.0
    return busy_s / total_s if total_s else None


def _limit_used(sample: Sample) -> float | None:
    limit, used_s = sample.values.get((_CPU_LIMIT,)), _process_cpu(sample)
    return used_s / limit if isinstance(limit, float) and limit and used_s is not None else None
