"""The vocabulary: metrics, what is read of them, and what is derived from two readings.

    tick -> Source.read -> Batch -> Snapshot -> rates(previous, current) -> Sample

All of it is frozen plain data. A number that is not known is not there: neither 0 nor a stale one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from collector.histogram import Buckets

Series = tuple[str, ...]
"""A metric's name, then the values of its labels in the order of `Metric.labels`."""

Value = int | float | str | tuple[int, ...]
"""What a source reads: a number, a text, or a histogram's cumulative bucket counts."""

Values = dict[Series, Value]


class Kind(Enum):
    """What a raw value means."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    TEXT = "text"


class Tier(Enum):
    """How often a metric is read: its value is the number of seconds between two readings."""

    TICK = 0.0
    """Every tick: what people watch."""
    OFTEN = 10.0
    """What costs the node the more, the more tables there are: its keyspaces' own counters."""
    SLOW = 60.0
    """Once a minute: sizes, capacities, versions."""
    HOURLY = 3600.0
    """Costly to read (it touches the node's disk): only when asked for."""


class Aggregation(Enum):
    """How the values of several nodes become the cluster's.

    Of a counter it is the rate that is aggregated; its increases always add up.
    """

    SUM = "sum"
    """Counts and amounts."""
    MEAN = "mean"
    """Ratios and percentages, such as the share of the time that a collector takes."""
    MAX = "max"
    """Where the highest value speaks for the cluster, as with ages and sizes of the largest one."""
    MIN = "min"
    """Where the lowest value speaks for the cluster."""
    MERGE = "merge"
    """Histograms: bucket counts add up, and percentiles come from the sum."""
    EQUAL = "equal"
    """Texts: the value that all nodes share, absent where they differ."""


_DEFAULT_AGGREGATION = {
    Kind.COUNTER: Aggregation.SUM,
    # Of a gauge that this version does not know, read from a recording; every gauge of the catalogue states its own.
    Kind.GAUGE: Aggregation.MEAN,
    Kind.HISTOGRAM: Aggregation.MERGE,
    Kind.TEXT: Aggregation.EQUAL,
}


class Owner(Enum):
    """What a metric is measured on. Nodes that share an owner report the same series, which counts once."""

    NODE = "node"
    MACHINE = "machine"
    NETWORK = "network"
    """A network namespace of a machine: a container has its own."""


@dataclass(frozen=True)
class Shown:
    """A column of the wide view: the series of its metric with `labels`, or the only one.

    `name` is the column's name in JSON and CSV with the unit last, `header` the terminal's. The value shown
    is the metric's (a rate for counters) times `scale`, with `digits` decimals.
    """

    name: str
    header: str
    labels: tuple[str, ...] = ()
    scale: float = 1.0
    digits: int = 0


@dataclass(frozen=True)
class Metric:
    """One thing that is measured.

    name    Prometheus style, with the base unit.
    unit    of the scaled value: seconds, bytes, 1 (a count), ratio, or "" for texts.
    scale   raw value times `scale` is the value in `unit`.
    count   for histograms: name of the counter that counts the same events.
    total   for histograms: name of the counter that adds up the same events' values.
    across  aggregation across nodes; None for the kind's default, which a gauge does not have.
    owner   what it is measured on.
    """

    name: str
    kind: Kind
    unit: str
    help: str
    labels: tuple[str, ...] = ()
    tier: Tier = Tier.TICK
    scale: float = 1.0
    count: str = ""
    total: str = ""
    shown: tuple[Shown, ...] = ()
    across: Aggregation | None = None
    owner: Owner = Owner.NODE

    @property
    def aggregation(self) -> Aggregation:
        """How values of several nodes become the cluster's."""
        return self.across or _DEFAULT_AGGREGATION[self.kind]

    @property
    def meaning(self) -> tuple[Kind, str, tuple[str, ...]]:
        """What two metrics of one name must have in common to be one."""
        return self.kind, self.unit, self.labels


@dataclass(frozen=True)
class Event:
    """Something worth a word in its row, such as a restart; `kind` is one of a few fixed words.

    time_s   when it happened, seconds since the epoch, where the event says so itself (a log's line does).
    """

    kind: str
    text: str
    time_s: float | None = None


@dataclass(frozen=True)
class Batch:
    """What one source read in one tick.

    at_s      monotonic time at which the source finished: rates divide by differences of it.
    origin    what its counters count from, such as a process' start: no rate spans two of them; "" where not known.
    problem   why there are no values (or not all of them), in one line; "" when all is well.
    events    what the source saw happen since the tick before.
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
    """One point of the clock's grid.

    time_s   wall time of the grid point, seconds since the epoch.
    late_s   how long after it the tick really began.
    missed   grid points that passed without a tick since the one before.
    suspended_s  how long the machine slept since the one before.
    """

    time_s: float
    late_s: float = 0.0
    missed: int = 0
    suspended_s: float = 0.0


@dataclass(frozen=True)
class Snapshot:
    """Everything read of one node in one tick."""

    node: str
    tick: Tick
    batches: tuple[Batch, ...]


class Reading(NamedTuple):
    """The last raw value of a series, when it was read and what it counts from."""

    value: Value
    at_s: float
    origin: str


class Rate(NamedTuple):
    """What a counter gained, in the metric's unit, and over how long.

    together_per_s  of several nodes: their rates, aggregated as the metric says; None for one node. The increase is
                    the sum in any case, and the nodes need not cover the same time.
    """

    gained: float
    elapsed_s: float
    together_per_s: float | None = None

    @property
    def per_s(self) -> float:
        """The mean rate over the interval."""
        return self.gained / self.elapsed_s if self.together_per_s is None else self.together_per_s


Derived = float | str | Rate | Buckets
"""Of gauges, texts, counters and histograms."""


@dataclass(frozen=True)
class Sample:
    """What happened on one node in one interval, in base units. A series that is absent is not known."""

    node: str
    tick: Tick
    values: Mapping[Series, Derived]
    elapsed_s: Mapping[str, float]
    """By source: how long its rates of this interval cover."""
    events: tuple[Event, ...] = ()
    held: Mapping[Series, Derived] = field(default_factory=dict)
    """What a source that answers at its own pace said before this interval: no news, and never part of a sum."""
    age_s: float | None = None
    """How long ago such a source was read; None where every source is read in every tick."""
    spread: Mapping[Series, tuple[float, float]] = field(default_factory=dict)
    """Of a gauge that is the mean of several readings: the least and the greatest of them."""


class SourceError(Exception):
    """A source could not be read this time; the message says what, where and what to do, in one line."""
