"""Expressions over metrics as plain data. Alerts and panels share them; `promql` and `influxql` render them.

Metric names are those that agents and load generators export. A test looks up every name that `metrics_of` yields, so
renaming a metric cannot break a panel unnoticed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from collector.model.metric import Aggregation
from collector.node.catalogue import CATALOGUE

LabelFilter = tuple[tuple[str, tuple[str, ...]], ...]
"""Labels and their permitted values; a value that ends in * matches every value with that prefix."""


@dataclass(frozen=True)
class Rate:
    """A counter's increase per second.

    within_node  the aggregation of one node's series: "sum", or "max" for series that do not add up, such as the busy
                 times of its disks.
    aggregation  the aggregation across nodes; None for the one in the metric's catalogue row. Rates in a ratio are
                 always summed.
    """

    metric: str
    where: LabelFilter = ()
    within_node: str = "sum"
    aggregation: Aggregation | None = None


@dataclass(frozen=True)
class Gauge:
    """The value of a gauge. `aggregation` applies to all series; None selects the one in the metric's catalogue row."""

    metric: str
    where: LabelFilter = ()
    aggregation: Aggregation | None = None


@dataclass(frozen=True)
class Quantile:
    """A quantile of a histogram, such as 0.99.

    PromQL computes it from the summed buckets of all series; in InfluxQL, it is the highest of the series' percentiles.
    """

    quantile: float
    metric: str
    where: LabelFilter = ()


@dataclass(frozen=True)
class Constant:
    """A number, such as the 1 in `1 - ratio`."""

    value: float


@dataclass(frozen=True)
class Ratio:
    """`left / right`. Panels show no value for 0 / 0."""

    left: "Expression"
    right: "Expression"


@dataclass(frozen=True)
class Difference:
    """`left - right`."""

    left: "Expression"
    right: "Expression"


Expression = Rate | Gauge | Quantile | Ratio | Difference | Constant


def aggregation_of(expression: Rate | Gauge) -> Aggregation:
    """Return the aggregation across nodes: the expression's own, else the catalogue's, else SUM for a rate.

    Raises ValueError for a gauge that neither specifies an aggregation nor is in the catalogue.
    """
    if expression.aggregation is not None:
        return expression.aggregation
    if (metric := CATALOGUE.get(expression.metric)) is not None:
        return metric.aggregation
    if isinstance(expression, Gauge):
        raise ValueError(f"{expression.metric}: not in the catalogue (hint: pass an aggregation)")
    return Aggregation.SUM


def where(**labels: str | tuple[str, ...]) -> LabelFilter:
    """Return a filter for the given label values, as in `where(operation="Read")`; `*` matches any text."""
    return tuple((name, (value,) if isinstance(value, str) else value) for name, value in labels.items())


def parts_of(expression: Expression) -> Iterator[Rate | Gauge | Quantile]:
    """Yield the parts of an expression that have a metric."""
    if isinstance(expression, Ratio | Difference):
        yield from parts_of(expression.left)
        yield from parts_of(expression.right)
    elif not isinstance(expression, Constant):
        yield expression


def metrics_of(expression: Expression) -> Iterator[str]:
    """Yield the name of every metric in an expression."""
    return (part.metric for part in parts_of(expression))
