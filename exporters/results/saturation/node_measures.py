"""Measures of a node for all of its intervals at once, from its arrays; NaN stands for an unknown measure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collector.merge.node_columns import Bools, Floats, NodeColumns
from collector.model.metric import Series
from collector.model.snapshot import WATCHED
from collector.node.host.network import SPEED
from collector.node.host.process import ALLOWED_CPUS, cpu_numbers
from exporters.results.saturation.saturation import BY_PROCESSOR, BYTES, CPU_LIMIT, PROCESS_CPU
from exporters.rows.column_arrays import ColumnArrays
from exporters.rows.columns import Gauge, PerSecond, SumOfRates
from exporters.rows.operation_columns import Operations

_IDLE = ("idle", "iowait")


@dataclass(frozen=True)
class NodeMeasures:
    """A node's measures, with one element for each of its intervals.

    answered      whether Cassandra answered.
    network_used  the share of the watched interface's capacity that the busier direction used.
    process_cpu   the CPU time per second of Cassandra's process, in seconds.
    cpu_busy      the share of the CPU time available to the process that is used, by it or by others. If the process
                  has a CPU limit, the share of the limit that it uses also counts.
    """

    answered: list[bool]
    network_used: list[float]
    process_cpu: list[float]
    cpu_busy: list[float]


def node_measures(node: NodeColumns) -> NodeMeasures:
    """Return the measures of a node."""
    arrays = ColumnArrays(node, Operations())
    with np.errstate(all="ignore"):
        speed = arrays.column(Gauge((SPEED.name, WATCHED)))
        bytes_per_s = np.fmax(*(arrays.column(PerSecond((name, WATCHED))) for name in BYTES))
        process_cpu = arrays.column(SumOfRates(tuple((name,) for name in PROCESS_CPU)))
        limit = arrays.column(Gauge((CPU_LIMIT,)))
        limit_used = process_cpu / np.where(limit != 0, limit, np.nan)
        network_used = bytes_per_s / np.where(speed != 0, speed, np.nan)
        cpu_busy = np.fmax(_processors_busy(node), limit_used)
    answered: Bools = np.zeros(len(node.indices), bool)
    for source in node.elapsed.keys() & set(node.head.sources):
        answered |= node.elapsed[source] != 0
    return NodeMeasures(answered.tolist(), network_used.tolist(), process_cpu.tolist(), cpu_busy.tolist())


def _processors_busy(node: NodeColumns) -> Floats:
    """Return the busy share of the processors that Cassandra's process may use."""
    counters: dict[Series, Floats] = {
        series: np.where(elapsed_s != 0, increase, 0.0)
        for series, (increase, elapsed_s) in node.sums.counters.items()
        if series[0] == BY_PROCESSOR and len(series) == 3
    }
    result = np.full(len(node.indices), np.nan)
    allowed = [texts.get((ALLOWED_CPUS.name,)) for texts in node.texts]
    for text in set(allowed):
        try:
            numbers = None if text is None else {str(number) for number in cpu_numbers(text)}
        except ValueError:
            continue
        included = [series for series in counters if numbers is None or series[1] in numbers]
        total_s = _sum(counters, included, len(allowed))
        busy_s = _sum(counters, [series for series in included if series[2] not in _IDLE], len(allowed))
        rows = np.asarray([other == text for other in allowed], bool)
        result[rows] = (busy_s / np.where(total_s != 0, total_s, np.nan))[rows]
    return result


def _sum(counters: Mapping[Series, Floats], names: Sequence[Series], height: int) -> Floats:
    total = np.zeros(height)
    for series in names:
        total = total + counters[series]
    return total
