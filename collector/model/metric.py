"""Metrics: a measurement's kind, unit, labels and scrape interval, and its aggregation across nodes."""

from dataclasses import dataclass
from enum import Enum

Series = tuple[str, ...]
"""A metric's name, followed by its label values in the order of `Metric.labels`."""

Value = int | float | str | tuple[int, ...]
"""A raw value: a number, a string, or a histogram's bucket counts since the process started."""

Values = dict[Series, Value]


class Kind(Enum):
    """The kind of a metric, as in Prometheus; TEXT is for versions and names."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    TEXT = "text"


class ScrapeInterval(Enum):
    """The time between two readings of a metric, in seconds (0 for every tick)."""

    TICK = 0.0
    """For metrics that are read on every tick."""
    OFTEN = 10.0
    """For keyspace counters, because the cost of computing them grows with the number of tables."""
    SLOW = 60.0
    """For sizes, capacities and versions."""


class Aggregation(Enum):
    """How the values of several nodes are combined into one.

    For counters, the aggregation applies to the rate; increases are always summed.
    """

    SUM = "sum"
    """For counts and amounts."""
    MEAN = "mean"
    """For ratios and percentages, such as the share of time spent in garbage collection."""
    MAX = "max"
    """For values where the highest matters, such as ages, and the number of endpoints that a node sees as down."""
    MIN = "min"
    """For values where the lowest matters, such as whether clients can connect."""
    MERGE = "merge"
    """For histograms: bucket counts are summed, and percentiles are computed from the sum."""
    EQUAL = "equal"
    """For text metrics: the value that all nodes share; absent if the values differ."""


_DEFAULT_AGGREGATION = {
    Kind.COUNTER: Aggregation.SUM,
    # Used only for recorded gauges that this version's catalogue lacks; those in the catalogue state their aggregation.
    Kind.GAUGE: Aggregation.MEAN,
    Kind.HISTOGRAM: Aggregation.MERGE,
    Kind.TEXT: Aggregation.EQUAL,
}


class Owner(Enum):
    """The entity that a metric describes. If nodes share one, such as a machine, its series are counted only once."""

    NODE = "node"
    MACHINE = "machine"
    NETWORK = "network"
    """A network namespace; a container has its own."""


@dataclass(frozen=True)
class WideColumn:
    """A column in the wide view. It shows the series of its metric that has the label values `labels`.

    name    the column's name in JSON and CSV, which ends with the unit.
    header  the column's header in the terminal.
    help    description for the list of columns; states the column's unit, which may differ from the metric's.
    scale   the column shows the metric's value (for counters, the rate) times `scale`.
    digits  the number of decimals in the terminal.
    """

    name: str
    header: str
    help: str
    labels: tuple[str, ...] = ()
    scale: float = 1.0
    digits: int = 0


def rate_column(name: str, header: str, help_text: str, *labels: str) -> WideColumn:
    """Return a column for the rate of events that are rare, with one decimal."""
    return WideColumn(name, header, help_text, labels, digits=1)


@dataclass(frozen=True)
class Metric:
    """A row of the catalogue.

    name     the name in Prometheus style, including the base unit.
    unit     the scaled value's unit: seconds, bytes, 1 (a count), ratio, or "" for text metrics.
    help     one sentence, as in Prometheus.
    scale    factor from the raw value to `unit`.
    count    for histograms: the counter of the same events.
    total    for histograms: the counter that sums the values of the same events.
    columns  the metric's columns in the wide view.
    across   aggregation across nodes; None for the kind's default. A gauge in the catalogue must state it.
    owner    the entity that the metric describes.
    may_decrease  for counters: whether they may decrease slightly without a reset, which counts as an increase of 0.
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
    may_decrease: bool = False

    @property
    def aggregation(self) -> Aggregation:
        """The aggregation across nodes: `across`, or the kind's default."""
        return self.across or _DEFAULT_AGGREGATION[self.kind]

    @property
    def meaning(self) -> tuple[Kind, str, tuple[str, ...]]:
        """The properties in which two metrics with the same name must agree to be the same metric."""
        return self.kind, self.unit, self.labels
