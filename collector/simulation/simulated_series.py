"""The series of a simulated node, each with the rule for its value, grouped by source, scrape interval and phase.

They are derived from the catalogue, so that a new metric is simulated as soon as it exists.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import accumulate, product
from math import log
from operator import add
from random import Random
from zlib import crc32

from collector.model.histogram import COUNTS_WITH_ZERO, upper_bounds_of
from collector.model.mbean import MBean
from collector.model.metric import Kind, Metric, ScrapeInterval, Series
from collector.model.snapshot import IDENTITY_LABELS, JOLOKIA_SOURCE
from collector.node.catalogue import BEANS, HOST
from collector.node.host.cpu import MODES
from collector.node.metrics.decaying_percentiles import DECAYED
from collector.node.selection import slowest_interval
from collector.simulation.value_rules import DISK, INTERFACE, MOUNT, PROCESSORS, Moment, Rule, constant, scalar_rule

CYCLE = 1024
TIMER_BUCKETS, COUNT_BUCKETS = 128, 165
US_PER_S = 1_000_000
KEYSPACE = "shop"
# Reads and writes of the local tables per client request.
REPLICAS = 2.0
_TABLE_NAMES = ("orders", "customers", "carts", "products", "prices", "stock", "sessions", "events", "ratings", "users")
_POOLS = (
    *(("request", name) for name in ("ReadStage", "MutationStage", "RequestResponseStage", "CounterMutationStage")),
    *(("request", name) for name in ("ViewMutationStage", "ReadRepairStage")),
    *(("internal", name) for name in ("AntiEntropyStage", "CacheCleanupExecutor", "CompactionExecutor", "GossipStage")),
    *(("internal", name) for name in ("HintsDispatcher", "InternalResponseStage", "MemtableFlushWriter")),
    *(("internal", name) for name in ("MemtablePostFlush", "MemtableReclaimMemory", "MigrationStage", "MiscStage")),
    *(("internal", name) for name in ("PendingRangeCalculator", "PerDiskMemtableFlushWriter_0", "Sampler")),
    *(("internal", name) for name in ("SecondaryIndexManagement", "ValidationExecutor")),
    ("transport", "Native-Transport-Requests"),
)
_MESSAGES = (
    *("READ_REQ", "READ_RSP", "MUTATION_REQ", "MUTATION_RSP", "RANGE_REQ", "RANGE_RSP", "HINT_REQ", "HINT_RSP"),
    *("COUNTER_MUTATION_REQ", "COUNTER_MUTATION_RSP", "READ_REPAIR_REQ", "READ_REPAIR_RSP", "BATCH_STORE_REQ"),
    *("BATCH_STORE_RSP", "BATCH_REMOVE_REQ", "PAXOS_PREPARE_REQ", "PAXOS_PREPARE_RSP", "PAXOS_PROPOSE_REQ"),
    *("PAXOS_PROPOSE_RSP", "PAXOS_COMMIT_REQ", "PAXOS_COMMIT_RSP", "TRUNCATE_REQ", "TRUNCATE_RSP", "_TRACE"),
)
# The values of labels that Cassandra's own MBeans have on every node.
_LABEL_VALUES: Mapping[str, Sequence[str]] = {
    "cache": ("KeyCache", "RowCache", "CounterCache", "ChunkCache"),
    "pool": ("chunk-cache", "networking"),
    "collector": ("G1 Young Generation", "G1 Old Generation", "G1 Concurrent GC"),
    "message": _MESSAGES,
    "keyspace": (KEYSPACE,),
    "mode": MODES,
    "cpu": tuple(map(str, range(PROCESSORS))),
    "mountpoint": (MOUNT,),
}
# The value of a label that is not in this table, such as one of a new metric.
_OTHER_LABEL = ("simulated",)
# The fast and the slow operations: median and standard deviation of the logarithm of their durations.
_CLIENT = {"Read": ((450e-6, 0.35), (5e-3, 0.7)), "Write": ((280e-6, 0.3), (3e-3, 0.7))}
_LOCAL = {"Read": ((110e-6, 0.4), (1.2e-3, 0.8)), "Write": ((24e-6, 0.4), (300e-6, 0.8))}
# Other histograms: what they count, and the median and standard deviation of the logarithm.
_OTHER_HISTOGRAMS: Mapping[str, tuple[str, float, float, int]] = {
    "cassandra_commitlog_commit_wait_seconds": ("Write", 60e-6, 0.5, TIMER_BUCKETS),
    "cassandra_message_latency_seconds": ("Read", 300e-6, 0.5, TIMER_BUCKETS),
    "cassandra_table_sstables_per_read": ("Read", 2.0, 0.5, COUNT_BUCKETS),
    "cassandra_table_tombstones_per_read": ("Read", 0.2, 2.0, COUNTS_WITH_ZERO),
    "cassandra_table_live_cells_per_read": ("Read", 8.0, 1.2, COUNT_BUCKETS),
}
# The number, the total time and the durations of operations.
_SUFFIXES = ("s_total", "_seconds_total", "_duration_seconds")
_OF_CLIENTS = frozenset(f"cassandra_client_request{suffix}" for suffix in _SUFFIXES)
_COORDINATED = frozenset(f"cassandra_table_coordinated{suffix}" for suffix in ("_total", "_duration_seconds"))
_OF_TABLES = frozenset(f"cassandra_table_operation{suffix}" for suffix in _SUFFIXES)
_OF_KEYSPACES = frozenset(f"cassandra_keyspace_operation{suffix}" for suffix in _SUFFIXES)


@dataclass(frozen=True)
class Cycle:
    """The cycle of values of one histogram.

    first      the index of the first bucket that is ever filled.
    length     the number of buckets of the whole histogram.
    counts     for each number of values, from 0 to CYCLE, the counts of the buckets from `first` on.
    totals_us  for each number of values, their sum; microseconds for times, else the unit of the values.
    """

    first: int
    length: int
    counts: tuple[tuple[int, ...], ...]
    totals_us: tuple[int, ...]

    def total_us(self, number: int) -> int:
        """Return the sum of the first `number` values."""
        cycles, rest = divmod(number, CYCLE)
        return cycles * self.totals_us[-1] + self.totals_us[rest]

    def buckets(self, number: int) -> tuple[int, ...]:
        """Return the bucket counts of the first `number` values."""
        cycles, rest = divmod(number, CYCLE)
        filled = [cycles * whole + part for whole, part in zip(self.counts[-1], self.counts[rest], strict=True)]
        return (*(0,) * self.first, *filled, *(0,) * (self.length - self.first - len(filled)))


def plus(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
    """Return the bucket counts of the values of two histograms with the same layout."""
    return tuple(map(add, first, second))


@lru_cache(maxsize=64)
def cycle_of(seed: str, unit: str, length: int, median: float, sigma: float) -> Cycle:
    """Return a cycle of log-normally distributed values: times in seconds, or numbers such as SSTables per read."""
    generator = Random(seed)  # noqa: S311 - not for secrets
    scale = US_PER_S if unit == "seconds" else 1
    upper_bounds = upper_bounds_of(unit, length)
    values = [generator.lognormvariate(log(median), sigma) for _ in range(CYCLE)]
    indices = [min(bisect_left(upper_bounds, value), length - 2) for value in values]
    first = min(indices)
    counts = [[0] * (max(indices) - first + 1)]
    for index in indices:
        counts.append(counts[-1].copy())
        counts[-1][index - first] += 1
    totals = accumulate((round(value * scale) for value in values), initial=0)
    return Cycle(first, length, tuple(map(tuple, counts)), tuple(totals))


def table_names(count: int) -> list[str]:
    return [f"{_TABLE_NAMES[index % 10]}{index // 10 or ''}" for index in range(count)]


def table_weights(count: int) -> dict[str, float]:
    """Return the tables' shares of the operations by name; the n-th table gets 1/n of what the first one gets."""
    total = sum(1 / number for number in range(1, count + 1))
    return {name: 1 / number / total for number, name in enumerate(table_names(count), 1)}


@lru_cache(maxsize=4)
def series_rules(tables: int) -> Mapping[str, Mapping[tuple[int, int], list[tuple[Series, Rule]]]]:
    """Return the series of a node with this number of tables, without those that name the node, and their rules.

    They are grouped by source, and by scrape interval (0 for every tick) and phase, both in seconds. The phase
    distributes slow series over the ticks; it is the same for metrics with the same labels.
    """
    groups: dict[str, dict[tuple[int, int], list[tuple[Series, Rule]]]] = {}
    for source, scrape_interval, series, rule in (*_host_series(), *_cassandra_series(tables)):
        every_s = int(scrape_interval.value)
        phase_s = crc32(repr(series[1:] or series).encode()) % max(every_s, 1)
        groups.setdefault(source, {}).setdefault((every_s, phase_s), []).append((series, rule))
    return groups


def _host_series() -> Iterator[tuple[str, ScrapeInterval, Series, Rule]]:
    for subject in HOST:
        values = {**_LABEL_VALUES, "device": (INTERFACE if subject.name == "network" else DISK,)}
        for metric in subject.metrics:
            for labels in product(*(values.get(label, _OTHER_LABEL) for label in metric.labels)):
                rule = scalar_rule(metric, labels, 1.0)
                yield subject.name, metric.scrape_interval, (metric.name, *labels), rule


def _cassandra_series(tables: int) -> Iterator[tuple[str, ScrapeInterval, Series, Rule]]:
    weights = table_weights(tables)
    for bean in BEANS:
        metric = bean.metric
        if metric.name in DECAYED or "id" in metric.labels or (metric.name,) in IDENTITY_LABELS:
            continue
        for labels in _label_values(bean, [*weights]):
            yield JOLOKIA_SOURCE, slowest_interval(metric), (metric.name, *labels), _rule(metric, labels, weights)


def _label_values(bean: MBean, tables: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the values of the labels of an MBean's metric, one tuple for each series."""
    parts: list[Sequence[tuple[str, ...]]] = []
    labels = list(bean.metric.labels)
    while labels:
        label = labels.pop(0)
        if label in bean.only:
            parts.append([(value,) for value in bean.only[label]])
        elif label == "path":
            labels.remove("pool")
            parts.append(_POOLS)
        elif label == "keyspace" and "table" in labels:
            labels.remove("table")
            parts.append([(KEYSPACE, table) for table in tables])
        else:
            parts.append([(value,) for value in _LABEL_VALUES.get(label, _OTHER_LABEL)])
    return [sum(values, ()) for values in product(*parts)]


def _rule(metric: Metric, labels: tuple[str, ...], weights: Mapping[str, float]) -> Rule:
    """Return the rule for one of Cassandra's series."""
    weight = weights.get(labels[1], 1.0) if "table" in metric.labels else 1.0
    operation = labels[-1] if metric.labels[-1:] == ("operation",) else ""
    if metric.name in _OF_KEYSPACES:
        # A keyspace's operations are those of its tables, which are rounded one by one.
        return _sum_rule([_operation_rule(metric, operation, REPLICAS * one, _LOCAL) for one in weights.values()])
    if metric.name in _OF_TABLES:
        return _operation_rule(metric, operation, REPLICAS * weight, _LOCAL)
    if metric.name in _OF_CLIENTS | _COORDINATED:
        return _operation_rule(metric, operation, weight, _CLIENT)
    if metric.kind is Kind.HISTOGRAM:
        return _histogram_rule(metric, weight)
    return scalar_rule(metric, labels, weight)


def _histogram_rule(metric: Metric, weight: float) -> Rule:
    if metric.name not in _OTHER_HISTOGRAMS:
        return constant((0,) * (TIMER_BUCKETS if metric.unit == "seconds" else COUNT_BUCKETS))
    operation, median, sigma, length = _OTHER_HISTOGRAMS[metric.name]
    cycle = cycle_of(metric.name, metric.unit, length, median, sigma)
    return lambda now: cycle.buckets(int(now.fast[operation] * weight))


def _operation_rule(
    metric: Metric, operation: str, weight: float, durations: Mapping[str, Sequence[tuple[float, float]]]
) -> Rule:
    """Return the rule for the number, the total time (in microseconds) or the durations of operations."""
    if operation not in durations:
        return constant((0,) * TIMER_BUCKETS if metric.kind is Kind.HISTOGRAM else 0)
    fast, slow = (cycle_of(f"{operation} {speed}", "seconds", TIMER_BUCKETS, *speed) for speed in durations[operation])
    if metric.kind is Kind.HISTOGRAM:
        return lambda now: plus(
            fast.buckets(int(now.fast[operation] * weight)), slow.buckets(int(now.slow[operation] * weight))
        )
    if metric.unit == "seconds":
        return lambda now: (
            fast.total_us(int(now.fast[operation] * weight)) + slow.total_us(int(now.slow[operation] * weight))
        )
    return lambda now: int(now.fast[operation] * weight) + int(now.slow[operation] * weight)


def _sum_rule(rules: Sequence[Rule]) -> Rule:
    def total(now: Moment) -> int | tuple[int, ...]:
        values = [rule(now) for rule in rules]
        histograms = [value for value in values if isinstance(value, tuple)]
        if histograms:
            return reduce(plus, histograms)
        return sum(value for value in values if isinstance(value, int))

    return total
