"""Metrics: what is measured, in which unit, how often, and how the values of several nodes are aggregated."""

from dataclasses import dataclass
from enum import Enum

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


class ScrapeInterval(Enum):
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
class WideColumn:
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
    scrape_interval: ScrapeInterval = ScrapeInterval.TICK
    scale: float = 1.0
    count: str = ""
    total: str = ""
    columns: tuple[WideColumn, ...] = ()
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
