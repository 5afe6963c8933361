"""What is to be seen of a cluster, as plain data: `promql` and `influxql` spell it, and alerts and panels share it.

Metrics are named as in the catalogue, and label values as it reads them: a metric that is renamed breaks no panel
silently, since `metrics_of` names what an expression is made of, and a test looks it up.
"""

from collections.abc import Iterator
from dataclasses import dataclass

Where = tuple[tuple[str, tuple[str, ...]], ...]
"""Labels, each with the values that it may have; one that ends in * stands for all that begin so."""


@dataclass(frozen=True)
class Rate:
    """What a counter gains per second, `across` all series that are one in the end: "sum", "max" or "min"."""

    metric: str
    where: Where = ()
    across: str = "sum"


@dataclass(frozen=True)
class Level:
    """A gauge, `across` all series that are one in the end: "max", "min", "sum" or "avg"."""

    metric: str
    where: Where = ()
    across: str = "max"


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
