"""What is read from a node in one tick, and the values of an interval between two ticks.

A tick has a scrape of each source of a node; together they are a snapshot. A sample has the values of an interval,
derived from two snapshots; a value that is not known is absent: neither 0 nor the previous value. An identity has the
labels of a node's series (its name, cluster, data centre and rack), and a placement states where the node runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from collector.model.histogram import Buckets
from collector.model.metric import Metric, Owner, Series, Value

# The names, in scrapes and recordings, of the sources that provide a node's read and write counts.
JOLOKIA_SOURCE = "cassandra"
NODETOOL_OPERATIONS_SOURCE = "nodetool tablestats"
TIME_UNITS_PER_S = 1e5
COST_UNITS_PER_S = 1e4
"""The journal stores times and costs as integers, in units of 10 µs and 0.1 ms, respectively."""


class SourceError(Exception):
    """A source could not be read in this tick. The message is one line: context, cause and possibly a hint."""


@dataclass(frozen=True)
class Event:
    """An event that is reported in a row of its own, such as a restart.

    kind    the type of event, one of a fixed set.
    time_s  the event's own time in seconds since the epoch, for example from a log line; None for most kinds.
    """

    kind: str
    text: str
    time_s: float | None = None


@dataclass(frozen=True)
class Scrape:
    """The values that one source returned in one tick.

    at_s      monotonic time at which the source was read; rates cover the time between two scrapes' `at_s`.
    origin    identifies the process or device that the counters belong to; no rate spans two origins. "" if unknown.
    problem   the reason for missing values, in one line; "" if no values are missing.
    events    events since the previous tick.
    wall_s    time spent reading the source.
    cpu_s     CPU time spent reading the source.
    """

    source: str
    at_s: float
    values: Mapping[Series, Value] = field(default_factory=dict)
    origin: str = ""
    problem: str = ""
    events: tuple[Event, ...] = ()
    wall_s: float = 0.0
    cpu_s: float = 0.0


@dataclass(frozen=True)
class Tick:
    """One point of the time grid.

    time_s       wall time of the point, in seconds since the epoch.
    late_s       delay between the point and the actual start of the tick.
    missed       number of points skipped since the previous tick.
    suspended_s  how long the machine was suspended between the previous tick and this one.
    """

    time_s: float
    late_s: float = 0.0
    missed: int = 0
    suspended_s: float = 0.0


NEVER = Tick(0.0)
"""The tick of a sample whose time does not matter."""


@dataclass(frozen=True)
class Snapshot:
    """All scrapes of one node in one tick."""

    node: str
    tick: Tick
    scrapes: tuple[Scrape, ...]


def with_rounded_times(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot at the journal's resolution, so that live rows equal those replayed from a recording."""
    scrapes = tuple(
        replace(
            scrape,
            at_s=_rounded(scrape.at_s, TIME_UNITS_PER_S),
            wall_s=_rounded(scrape.wall_s, COST_UNITS_PER_S),
            cpu_s=_rounded(scrape.cpu_s, COST_UNITS_PER_S),
        )
        for scrape in snapshot.scrapes
    )
    tick = snapshot.tick
    late_s, suspended_s = _rounded(tick.late_s, TIME_UNITS_PER_S), _rounded(tick.suspended_s, TIME_UNITS_PER_S)
    return Snapshot(snapshot.node, replace(tick, late_s=late_s, suspended_s=suspended_s), scrapes)


def _rounded(seconds: float, units_per_s: float) -> float:
    return round(seconds * units_per_s) / units_per_s


class Reading(NamedTuple):
    """The last raw value of a series, the monotonic time of its scrape, and its source's origin."""

    value: Value
    at_s: float
    origin: str


class Rate(NamedTuple):
    """A counter's increase, in the metric's unit, and the time it covers.

    aggregated_per_s  for several nodes, their rates aggregated as the metric defines; None for one node. It cannot be
                      computed from the increase, which is always a sum, and the elapsed time, which may differ
                      between nodes.
    """

    increase: float
    elapsed_s: float
    aggregated_per_s: float | None = None

    @property
    def per_s(self) -> float:
        """The mean rate over the interval."""
        return self.increase / self.elapsed_s if self.aggregated_per_s is None else self.aggregated_per_s


Derived = float | str | Rate | Buckets
"""A value in a sample: that of a gauge, a text metric, a counter or a histogram, respectively."""


@dataclass(frozen=True)
class Sample:
    """The values of one node in one interval, in base units.

    elapsed_s   for each source, the time that its rates cover.
    last_known  stale values, from before this interval, of sources that are read at their own pace; never summed.
    age_s       the age of the `last_known` values; None if every source is read on every tick.
    spread      for each gauge that is the mean of several readings, their minimum and maximum.
    """

    node: str
    tick: Tick
    values: Mapping[Series, Derived]
    elapsed_s: Mapping[str, float]
    events: tuple[Event, ...] = ()
    last_known: Mapping[Series, Derived] = field(default_factory=dict)
    age_s: float | None = None
    spread: Mapping[Series, tuple[float, float]] = field(default_factory=dict)


IDENTITY_LABELS: Mapping[Series, str] = {
    ("cassandra_cluster_name",): "cluster",
    ("cassandra_datacenter",): "dc",
    ("cassandra_rack",): "rack",
}
"""Maps each series that provides a label's value to the label's name."""
WATCHED = "watched"
"""The label that replaces the names of a node's watched disk and interface, which differ between machines."""


@dataclass(frozen=True)
class Identity:
    """A node's labels; "" for a label that is not known yet."""

    cluster: str = ""
    dc: str = ""
    rack: str = ""
    node: str = ""

    def after(self, snapshot: Snapshot) -> "Identity":
        """Return the identity updated from a snapshot; `self` if nothing has changed.

        If the snapshot has a different node name, the previous labels are discarded.
        """
        labels = {
            label: str(scrape.values[series])
            for scrape in snapshot.scrapes
            for series, label in IDENTITY_LABELS.items()
            if series in scrape.values
        }
        base = self if self.node in ("", snapshot.node) else Identity()
        updated = replace(base, node=snapshot.node, **labels)
        return self if updated == self else updated

    def labels(self) -> Mapping[str, str]:
        """Return the known labels, in output order."""
        labels = {"cluster": self.cluster, "dc": self.dc, "rack": self.rack, "node": self.node}
        return {label: value for label, value in labels.items() if value}


@dataclass(frozen=True)
class Placement:
    """Where a node runs. Nodes on the same machine all report that machine's series.

    machine    the machine's boot id; "" if unknown, in which case nothing is shared.
    network    the network namespace on that machine.
    disk       the disk labelled WATCHED in the node's samples; `interface` is the network interface with that label.
    """

    machine: str = ""
    network: str = ""
    disk: str = ""
    interface: str = ""

    def shared(self, metric: Metric | None, series: Series) -> Series:
        """Return a key that is equal for all nodes that share the series; () for a series that is not shared."""
        if not self.machine or metric is None or metric.owner is Owner.NODE:
            return ()
        is_network = metric.owner is Owner.NETWORK
        if series[1:] == (WATCHED,):
            series = (series[0], self.interface if is_network else self.disk)
        return (self.machine, self.network if is_network else "", *series)


NOWHERE = Placement()
