"""What is to be seen of a cluster, as plain data: `promql` and `influxql` spell it, and alerts and panels share it.

Metrics are named as in the catalogue, and label values as it reads them: a metric that is renamed breaks no panel
silently, since `metrics_of` names what an expression is made of, and a test looks it up.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from collector.catalogue import CATALOGUE
from collector.model.metric import Aggregation

Where = tuple[tuple[str, tuple[str, ...]], ...]
"""Labels, each with the values that it may have; one that ends in * stands for all that begin so."""


@dataclass(frozen=True)
class Rate:
    """The rate of a counter per second.

    within  how the series of one node become one: "sum", or "max" where they do not add up, as busy disks do not.
    across  how nodes become one; None for what the metric's row says. In a ratio increases are compared, which add up.
    """

    metric: str
    where: Where = ()
    within: str = "sum"
    across: Aggregation | None = None


@dataclass(frozen=True)
class Level:
    """A gauge; `across` says how series become one, None for what the metric's row says of nodes."""

    metric: str
    where: Where = ()
    across: Aggregation | None = None


@dataclass(frozen=True)
class Quantile:
    """What share of the events of a histogram took no longer: from the buckets of all series together."""

    share: float
    metric: str
    where: Where = ()


@dataclass(frozen=True)
class Number:
    """A number, such as the whole that a share is a part of."""

    value: float


@dataclass(frozen=True)
class Ratio:
    """One as a part of the other: absent where there is nothing that it could be a part of."""

    part: "Expression"
    whole: "Expression"


@dataclass(frozen=True)
class Rest:
    """What is left of the one without the other, such as the free part of what there is."""

    whole: "Expression"
    part: "Expression"


Expression = Rate | Level | Quantile | Ratio | Rest | Number


def aggregation_of(expression: Rate | Level) -> Aggregation:
    """Return how nodes become one. Raises ValueError for a gauge that the catalogue does not have."""
    if expression.across is not None:
        return expression.across
    if (metric := CATALOGUE.get(expression.metric)) is not None:
        return metric.aggregation
    if isinstance(expression, Level):
        raise ValueError(f"{expression.metric}: no metric of the catalogue: say how nodes are aggregated")
    return Aggregation.SUM


def where(**labels: str | tuple[str, ...]) -> Where:
    """Return label values as expressions have them."""
    return tuple((name, (value,) if isinstance(value, str) else value) for name, value in labels.items())


def metrics_of(expression: Expression) -> Iterator[str]:
    """Yield the names of the metrics that an expression is made of."""
    if isinstance(expression, Ratio | Rest):
        yield from metrics_of(expression.part)
        yield from metrics_of(expression.whole)
    elif not isinstance(expression, Number):
        yield expression.metric
