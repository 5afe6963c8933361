"""Formulas: each computes a column's cell from a sample.

They are data rather than functions, so that `exporters.rows.column_arrays` can also compute a column for all of a
node's intervals at once.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress

from collector.model.metric import Series
from collector.model.sample import Rate, Sample
from collector.node.metrics.jvm import counts_pauses

Cell = float | str | None
Formula = Callable[[Sample], Cell]
"""One of the formulas below, or any other function, which then costs more time in a merge."""
JointFormula = Callable[[Sample], Sequence[Cell]]
"""Computes the cells of several columns that share most of the work."""


@dataclass(frozen=True)
class PerSecond:
    """A counter's rate per second, times `factor`."""

    series: Series
    factor: float = 1.0

    def __call__(self, sample: Sample) -> float | None:
        return times(self.factor, per_s(sample, self.series))


@dataclass(frozen=True)
class Gauge:
    """A gauge, times `factor`."""

    series: Series
    factor: float = 1.0

    def __call__(self, sample: Sample) -> float | None:
        return times(self.factor, number(sample, self.series))


@dataclass(frozen=True)
class Ratio:
    """The quotient of two counters' increases (see `ratio`), times `factor`."""

    numerator: Series
    denominator: Series
    factor: float = 1.0

    def __call__(self, sample: Sample) -> float | None:
        return times(self.factor, ratio(sample, self.numerator, self.denominator))


@dataclass(frozen=True)
class Percentage:
    """The share of some counters in the increase of all of them, in percent; None unless all are known.

    is_included  whether each counter belongs to the share.
    """

    series: tuple[Series, ...]
    is_included: tuple[bool, ...]

    def __call__(self, sample: Sample) -> float | None:
        return _percentages(sample, self.series, (self.is_included,))[0]


def percentages(formulas: Sequence[Percentage]) -> JointFormula:
    """Return the joint formula of percentages of the same counters."""
    series, masks = formulas[0].series, [formula.is_included for formula in formulas]
    return lambda sample: _percentages(sample, series, masks)


def _percentages(sample: Sample, series: Sequence[Series], masks: Sequence[Sequence[bool]]) -> Sequence[float | None]:
    increases = [rate.increase for rate in map(sample.values.get, series) if type(rate) is Rate]
    total = sum(increases)
    if len(increases) < len(series) or not total:
        return [None] * len(masks)
    return [100 * sum(compress(increases, mask)) / total for mask in masks]


@dataclass(frozen=True)
class SumOfRates:
    """The sum of the known rates per second; None if none is known."""

    series: tuple[Series, ...]

    def __call__(self, sample: Sample) -> float | None:
        return sum_of_known(per_s(sample, series) for series in self.series)


@dataclass(frozen=True)
class CollectionTime:
    """The share of time in which garbage collection pauses the application, in percent.

    counter           the metric with a counter of seconds for each garbage collector; concurrent cycles do not count.
    total, interval   gauges that are used if there is no such counter: the time in collections during an interval, and
                      its length.
    """

    counter: str
    total: Series
    interval: Series

    def __call__(self, sample: Sample) -> float | None:
        rates = [
            rate.per_s
            for series, rate in sample.values.items()
            if series[0] == self.counter and isinstance(rate, Rate) and counts_pauses(series)
        ]
        if rates:
            return 100 * sum(rates)
        interval, total = number(sample, self.interval), number(sample, self.total)
        return 100 * total / interval if total is not None and interval else None


def per_s(sample: Sample, series: Series) -> float | None:
    """Return a counter's rate per second; None if it is absent."""
    rate = sample.values.get(series)
    return rate.per_s if isinstance(rate, Rate) else None


def ratio(sample: Sample, numerator: Series, denominator: Series) -> float | None:
    """Return the quotient of two counters' increases over the same time (a mean or a share); None if undefined."""
    above, below = sample.values.get(numerator), sample.values.get(denominator)
    if not isinstance(above, Rate) or not isinstance(below, Rate) or not below.increase:
        return None
    if above.elapsed_s != below.elapsed_s:
        return None
    return above.increase / below.increase


def sum_of_known(values: Iterable[float | None]) -> float | None:
    """Return the sum of the values that are known; None if none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def times(factor: float, value: float | None) -> float | None:
    """Return the product; None if the value is absent."""
    return None if value is None else factor * value


def number(sample: Sample, series: Series) -> float | None:
    """Return a gauge's value; None if it is absent."""
    value = sample.values.get(series)
    return value if isinstance(value, float) else None
