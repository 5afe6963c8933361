"""The resource that limited a run first, from the measures of all hosts in each interval."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import fmean, median

from collector.model.snapshot import Rate, Sample
from collector.node.jolokia.table_budget import OTHERS
from collector.node.metrics.tables import OPERATIONS

Loads = Mapping[str, float]
"""The known measures of a node or client host in one interval, by name."""
# Alerts, panels and `top` have the same limits (`dashboards/thresholds.py`).
BUSY = 0.9
"""A share of a disk's time or of a capacity. Requests queue long before the last idle percent is used, because the load
varies within an interval. The nodes' limit for the CPU is lower, because it also requires that tasks wait or that one
node uses most of the CPU time."""
GC_SHARE = 0.25
COMPACTIONS_PENDING = 30
_WAITING = 0.2
QUEUED = "queued"
"""The number of requests that wait in thread pools: a symptom, from which no resource can be named."""
TABLE_OPERATIONS = OPERATIONS.metric.name
"""The metric that `table_operations` needs."""
BYTES = ("node_network_receive_bytes_total", "node_network_transmit_bytes_total")
BY_PROCESSOR = "node_cpu_seconds_total"
PROCESS_CPU = ("casstat_process_user_seconds_total", "casstat_process_system_seconds_total")
CPU_LIMIT = "casstat_cgroup_cpu_limit"
"""Metrics from which the use of a node is computed."""
Operations = Mapping[tuple[str, str], float]
"""The number of local reads and writes in one interval, by keyspace and table."""
MIN_SHARE = 0.8
# Operations of tables that are not read are computed from differences between counters that are read at slightly
# different times, so a smaller share may be an error.
_MIN_SHARE_OF_OTHERS = 0.01
WINDOW = 10
"""The number of intervals that are judged together, so that a short burst does not count."""
# A cause may be noticed later than its effect, by up to this number of windows.
_SLACK = 2
_MIN_INTERVALS = 5
_MIN_QUEUED = 1.0


@dataclass(frozen=True)
class Limit:
    """A value that a measure of a saturated resource reaches.

    measure  the name of the measure in `Loads`.
    bound    the value.
    form     formats the summary of the measure as text.
    summary  combines the values of several intervals.
    """

    measure: str
    bound: float
    form: str
    summary: Callable[[Iterable[float]], float] = median


@dataclass(frozen=True)
class Resource:
    """A resource.

    It is saturated in an interval if every known measure in `limits` reaches its limit, or if one in `alternatives`
    does. If neither is the case and the first measure is unknown, so is the state of the resource.

    of_nodes, of_clients  whether it is a resource of nodes and of client hosts.
    unknown_text          the statement of the report if its state is unknown on at least one host, for a resource that
                          often is; "" for a resource without which the result is undetermined.
    depends_on_tables     whether the table with most of the operations may be the cause of the saturation.
    """

    name: str
    limits: tuple[Limit, ...]
    alternatives: tuple[Limit, ...] = ()
    of_nodes: bool = True
    of_clients: bool = False
    unknown_text: str = ""
    depends_on_tables: bool = False

    @property
    def all_limits(self) -> tuple[Limit, ...]:
        return *self.limits, *self.alternatives

    def is_saturated(self, loads: Loads) -> bool | None:
        if any(loads[limit.measure] >= limit.bound for limit in self.alternatives if limit.measure in loads):
            return True
        if self.limits[0].measure not in loads:
            return None
        return all(loads[limit.measure] >= limit.bound for limit in self.limits if limit.measure in loads)


_CPU = Limit("cpu_busy", 0.85, "{:.0%} of its processors busy")
UNAVAILABLE = Resource(
    "unavailable node",
    (
        Limit("unanswered", 1, "no answer in {:.0%} of the intervals", fmean),
        # A process that works is kept from answering by something else, such as garbage collection.
        Limit("process_idle", 1, "its process idle in {:.0%}", fmean),
    ),
)
NETWORK = Resource(
    "network",
    (Limit("network_used", BUSY, "{:.0%} of the interface's capacity used"),),
    of_clients=True,
    unknown_text="the network's capacity is unknown on at least one host",
)
GENERATOR = Resource(
    "load generator",
    (Limit("generator_cpu", BUSY, "{:.0%} of its processors busy"),),
    # More processors do not help a load generator whose work is done by one thread.
    (Limit("generator_thread", BUSY, "{:.0%} of one processor used by its busiest thread"),),
    of_nodes=False,
    of_clients=True,
)
GC = Resource("garbage collection", (Limit("gc_share", GC_SHARE, "{:.0%} of the time in pauses"),))
DISK = Resource(
    "disk",
    (
        Limit("disk_util", BUSY, "{:.0%} utilisation"),
        # A disk that serves requests in parallel is not saturated at 100% utilisation.
        Limit("disk_await_ms", 5, "{:.1f} ms per request"),
        Limit("io_waiting", _WAITING, "tasks waiting {:.0%} of the time"),
    ),
    depends_on_tables=True,
)
HOT_NODE = Resource(
    "hot node", (Limit("cpu_ratio", 1.8, "{:.1f} times the mean CPU time of the nodes"), _CPU), depends_on_tables=True
)
CPU = Resource(
    "CPU", (_CPU, Limit("cpu_waiting", _WAITING, "tasks waiting {:.0%} of the time")), depends_on_tables=True
)
COMPACTION = Resource("compaction", (Limit("compactions_pending", COMPACTIONS_PENDING, "{:.0f} pending compactions"),))
# During a collection, a node does not answer, and the others have more traffic if a node does not answer. Traffic uses
# the processors and disks of nodes and client hosts; none of them causes traffic by being busy.
RESOURCES = (GC, UNAVAILABLE, NETWORK, GENERATOR, DISK, HOT_NODE, CPU, COMPACTION)
"""All resources; those that cause the saturation of others come before them."""


def _is_unresponsive(loads: Loads) -> bool:
    """Return whether a node does not answer although its process works: something keeps it from answering."""
    return bool(loads.get("unanswered")) and loads.get("process_idle") == 0


@dataclass(frozen=True)
class HotTable:
    """A table, and its share of the local reads and writes on all recorded tables."""

    keyspace: str
    table: str
    share: float


def table_operations(sample: Sample) -> Operations:
    """Return the operations on the tables that had any."""
    operations: dict[tuple[str, str], float] = {}
    for series, value in sample.values.items():
        if series[0] == TABLE_OPERATIONS and len(series) == 4 and isinstance(value, Rate) and value.increase:
            table = series[1], series[2]
            operations[table] = operations.get(table, 0.0) + value.increase
    return operations


def hot_table(intervals: Iterable[Operations]) -> HotTable | None:
    """Return the table with at least MIN_SHARE of the operations; None if there is none, or only one table has any."""
    totals: dict[tuple[str, str], float] = {}
    for operations in intervals:
        for table, count in operations.items():
            totals[table] = totals.get(table, 0.0) + count
    total = sum(totals.values())
    shares = {table: count / total for table, count in totals.items() if count}
    active = [table for table, share in shares.items() if table[1] != OTHERS or share >= _MIN_SHARE_OF_OTHERS]
    hottest = max(shares, key=lambda table: shares[table], default=None)
    if hottest is None or hottest[1] == OTHERS or len(active) < 2 or shares[hottest] < MIN_SHARE:
        return None
    return HotTable(*hottest, shares[hottest])


# The causes of all others. While a node does not answer although its process works, they cannot be excluded.
_BEFORE_SILENCE = (GC, UNAVAILABLE)


@dataclass(frozen=True)
class Interval:
    """An interval of a node or client host: its end in seconds since the epoch, its measures and its operations."""

    end_s: float
    loads: Loads
    operations: Operations = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """The state of a resource on one node or client host.

    begin_s    the beginning of its saturation; None if it was not saturated.
    values     the summaries of its measures, from `begin_s` to the end of the phase, or of all intervals.
    hot_table  the table with most of the operations in that time, if the resource was saturated first.
    """

    resource: Resource
    host: str
    begin_s: float | None
    values: Loads
    hot_table: HotTable | None = None

    @property
    def text(self) -> str:
        """The measures as text."""
        limits = [limit for limit in self.resource.all_limits if limit.measure in self.values]
        return ", ".join(limit.form.format(self.values[limit.measure]) for limit in limits)


@dataclass(frozen=True)
class Saturation:
    """The result of the analysis.

    first         the resource that was saturated first; None if none was.
    findings      for each measured resource, its state on the host where it was saturated first or highest.
    unmeasured    the resources whose state is unknown on at least one of their hosts in at least one phase.
    queued        the median number of requests waiting in thread pools of the node with the longest queue.
    unresponsive  a node that did not answer in most intervals of a phase although its process worked; "" if there is
                  none or if `first` explains it.
    """

    first: Finding | None
    findings: Sequence[Finding]
    unmeasured: Sequence[Resource]
    queued: float = 0.0
    unresponsive: str = ""

    @property
    def is_undetermined(self) -> bool:
        """Whether a resource that was not measured may have limited the run."""
        unmeasured = any(not resource.unknown_text for resource in self.unmeasured)
        return self.first is None and (unmeasured or self.has_queue or bool(self.unresponsive))

    @property
    def has_queue(self) -> bool:
        return self.queued >= _MIN_QUEUED


def saturation(phases: Sequence[Mapping[str, Sequence[Interval]]], client_hosts: Set[str] = frozenset()) -> Saturation:
    """Return which resource was saturated first; each phase has the intervals of all hosts by name, in order.

    Hosts that are not in `client_hosts` are nodes.

    A resource is saturated from a window of intervals on if it is saturated in most intervals of that window, and in
    most intervals from there to the end of the phase.
    """
    findings, unmeasured = [], []
    for resource in RESOURCES:
        states = [
            _state(resource, host, intervals)
            for phase in phases
            for host, intervals in phase.items()
            if (resource.of_clients if host in client_hosts else resource.of_nodes)
        ]
        known = [state for state in states if state is not None]
        if known:
            findings.append(min(known, key=_order))
        if not known or len(known) < len(states):
            unmeasured.append(resource)
    queued = max((_queued(intervals) for phase in phases for intervals in phase.values()), default=0.0)
    first = _first(findings, phases)
    unresponsive = "" if first is not None and first.resource in _BEFORE_SILENCE else _unresponsive(phases)
    if unresponsive:
        first = None
    if first is not None:
        index = findings.index(first)
        first = findings[index] = _with_hot_table(first, phases)
    return Saturation(first, findings, unmeasured, queued, unresponsive)


def _queued(intervals: Sequence[Interval]) -> float:
    """Return the median number of requests waiting in thread pools; 0 if it is unknown."""
    known = [interval.loads[QUEUED] for interval in intervals if QUEUED in interval.loads]
    return median(known) if known else 0.0


def _unresponsive(phases: Sequence[Mapping[str, Sequence[Interval]]]) -> str:
    """Return a host that was unresponsive in most intervals of a phase; "" if there is none."""
    for phase in phases:
        for host, intervals in phase.items():
            if 2 * sum(_is_unresponsive(interval.loads) for interval in intervals) > len(intervals):
                return host
    return ""


def _order(finding: Finding) -> tuple[float, float]:
    """Return the sort key that puts early saturation before late, and high loads before low ones."""
    begin_s = float("inf") if finding.begin_s is None else finding.begin_s
    return begin_s, -finding.values.get(finding.resource.limits[0].measure, 0.0)


def _state(resource: Resource, host: str, intervals: Sequence[Interval]) -> Finding | None:
    """Return the state of a resource on a host in one phase; None if it is unknown."""
    states = [(interval, resource.is_saturated(interval.loads)) for interval in intervals]
    known = [interval for interval, state in states if state is not None]
    if len(known) < _MIN_INTERVALS:
        return None
    begin = _begin([state for _, state in states if state is not None])
    begin_s = None if begin is None else known[max(0, begin - 1)].end_s
    return Finding(resource, host, begin_s, _summaries(resource.all_limits, known[begin or 0 :]))


def _begin(saturated: Sequence[bool]) -> int | None:
    """Return the index of the interval in which saturation begins; None if there is no saturation."""
    windows = [saturated[begin : begin + WINDOW] for begin in range(0, len(saturated), WINDOW)]
    if len(windows) > 1 and len(windows[-1]) < _MIN_INTERVALS:
        windows.pop()
    states = [2 * sum(window) > len(window) for window in windows]
    for number, state in enumerate(states):
        begin = number * WINDOW
        if state and 2 * sum(saturated[begin:]) > len(saturated) - begin:
            return begin + list(windows[number]).index(True)
    return None


def _summaries(limits: Sequence[Limit], intervals: Sequence[Interval]) -> dict[str, float]:
    known = {
        limit: [interval.loads[limit.measure] for interval in intervals if limit.measure in interval.loads]
        for limit in limits
    }
    return {limit.measure: limit.summary(values) for limit, values in known.items() if values}


def _first(findings: Sequence[Finding], phases: Sequence[Mapping[str, Sequence[Interval]]]) -> Finding | None:
    """Return the finding that began first; of those with about the same beginning, the cause of the others."""
    begins = [(finding.begin_s, finding) for finding in findings if finding.begin_s is not None]
    if not begins:
        return None
    earliest_s = min(begin_s for begin_s, _ in begins)
    slack_s = _SLACK * WINDOW * _interval_s(phases)
    return next(finding for begin_s, finding in begins if begin_s <= earliest_s + slack_s)


def _with_hot_table(first: Finding, phases: Sequence[Mapping[str, Sequence[Interval]]]) -> Finding:
    """Return the finding with the table that had most of the operations from its beginning to the end of its phase."""
    begin_s = first.begin_s
    if begin_s is None or not first.resource.depends_on_tables:
        return first
    of_host = [phase.get(first.host, ()) for phase in phases]
    in_phase = (known for known in of_host if known and known[0].end_s <= begin_s <= known[-1].end_s)
    operations = (interval.operations for interval in next(in_phase, ()) if interval.end_s > begin_s)
    return replace(first, hot_table=hot_table(operations))


def _interval_s(phases: Sequence[Mapping[str, Sequence[Interval]]]) -> float:
    """Return the median time between the ends of two intervals, in seconds."""
    gaps = [
        later.end_s - earlier.end_s
        for phase in phases
        for intervals in phase.values()
        for earlier, later in pairwise(intervals)
    ]
    return median(gaps) if gaps else 0.0
