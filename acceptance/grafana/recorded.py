"""Evaluates signals on the agents' recordings, exported by `casstat merge --series`, instead of on scrapes.

A point is a time (seconds since the epoch) and a value; a gain is a time, a bucket's upper bound, and the increase of
that bucket's count.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from math import inf
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

from collector.arrow import pc, pq
from collector.model.histogram import COUNTS_WITH_ZERO, TIMER_UNITS_S, Buckets, LayoutError, quantile, upper_bounds_of
from collector.model.metric import Aggregation, Owner, ScrapeInterval
from collector.node.catalogue import CATALOGUE
from dashboards.expression import (
    Constant,
    Difference,
    Expression,
    Gauge,
    LabelFilter,
    Quantile,
    Rate,
    Ratio,
    aggregation_of,
    metrics_of,
)
from dashboards.promql import NODE_LABELS

Labels = tuple[tuple[str, str], ...]
Values = dict[Labels, float]
Point = TypeVar("Point", tuple[float, float], tuple[float, float, float])
Points = list[tuple[float, float]]
Gains = list[tuple[float, float, float]]
WITHIN: Mapping[str, Callable[[list[float]], float]] = {"sum": sum, "max": max}
ACROSS: Mapping[Aggregation, Callable[[list[float]], float]] = {
    Aggregation.SUM: sum,
    Aggregation.MEAN: fmean,
    Aggregation.MAX: max,
    Aggregation.MIN: min,
}
MAX_WINDOW_S = 240.0
LENGTHS = (*TIMER_UNITS_S, COUNTS_WITH_ZERO)


@dataclass
class Recorded:
    """The values and buckets of all nodes, keyed by metric and labels; times are in seconds since the epoch.

    by_node  whether a percentile over several nodes is the highest of the nodes' percentiles, instead of the percentile
             of their summed buckets.
    """

    values: dict[str, dict[Labels, Points]] = field(default_factory=lambda: defaultdict(dict))
    buckets: dict[str, dict[Labels, Gains]] = field(default_factory=lambda: defaultdict(dict))
    from_s: float = 0.0
    to_s: float = inf
    by_node: bool = False

    def mean(self, expression: Expression, by: Sequence[str], window_s: float, step_s: float) -> Values:
        """Return the mean of an expression's values over windows that last `window_s` and end `step_s` apart."""
        groups: dict[Labels, list[float]] = defaultdict(list)
        for number in range(1, round((self.to_s - self.from_s) / step_s) + 1):
            end_s = self.from_s + number * step_s
            window = replace(self, from_s=end_s - window_s, to_s=end_s)
            for labels, value in window.evaluate(expression, by).items():
                groups[labels].append(value)
        return {labels: fmean(values) for labels, values in groups.items()}

    def evaluate(self, expression: Expression, by: Sequence[str], *, in_ratio: bool = False) -> Values:
        """Return an expression's value over the time range, for each combination of the labels `by`.

        The result is empty for self-metrics, which agents serve to Prometheus but do not record.
        """
        if not set(metrics_of(expression)) <= CATALOGUE.keys():
            return {}
        match expression:
            case Constant():
                return {(): expression.value}
            case Ratio():
                part, whole = (self.evaluate(side, by, in_ratio=True) for side in (expression.left, expression.right))
                return {labels: part[labels] / whole[labels] for labels in part if whole.get(labels)}
            case Difference():
                left = self.evaluate(expression.left, by, in_ratio=in_ratio)
                right = self.evaluate(expression.right, by, in_ratio=in_ratio)
                # A constant has no labels and applies to every series.
                series = (left.keys() | right.keys()) - {()}
                return {key: left.get(key, left.get((), 0.0)) - right.get(key, right.get((), 0.0)) for key in series}
            case Quantile():
                return self._quantile(expression, by)
            case Rate() | Gauge():
                return self._joined(expression, by, in_ratio=in_ratio)

    def _joined(self, expression: Rate | Gauge, by: Sequence[str], *, in_ratio: bool) -> Values:
        series, metric = self._series(expression), CATALOGUE[expression.metric]
        if metric.owner is not Owner.NODE and "node" not in by:
            # The demo cluster's nodes share one machine, so each of them reports the same machine series.
            series = _grouped(series, (*by, *metric.labels), max)
        if isinstance(expression, Gauge):
            return _grouped(series, by, ACROSS[aggregation_of(expression)])
        of_nodes = _grouped(series, (*NODE_LABELS, *by), WITHIN[expression.within_node])
        # The rates in a ratio are summed over all nodes, even if they would otherwise be averaged.
        return _grouped(of_nodes, by, sum if in_ratio else ACROSS[aggregation_of(expression)])

    def _series(self, expression: Rate | Gauge) -> Values:
        recorded, scale = self.values[expression.metric], CATALOGUE[expression.metric].scale
        matching = {labels: points for labels, points in recorded.items() if _matches(labels, expression.where)}
        if isinstance(expression, Rate):
            # A rate starts from the last reading before the time range.
            known = {labels: self._within(points, 1) for labels, points in matching.items()}
            return {labels: scale * _gain_per_s(points) for labels, points in known.items() if len(points) > 1}
        known = {labels: self._within(points, 0) for labels, points in matching.items()}
        return {labels: scale * fmean(value for _, value in points) for labels, points in known.items() if points}

    def _within(self, points: list[Point], before: int = 0) -> list[Point]:
        """Return the points in the time range and up to `before` points immediately before it."""
        first = bisect_right(points, self.from_s, key=itemgetter(0))
        return points[max(first - before, 0) : bisect_right(points, self.to_s, key=itemgetter(0))]

    def _quantile(self, expression: Quantile, by: Sequence[str]) -> Values:
        groups: dict[Labels, dict[float, float]] = defaultdict(lambda: defaultdict(float))
        for labels, gains in self.buckets[expression.metric].items():
            if _matches(labels, expression.where):
                for _, edge, count in self._within(gains):
                    groups[labels if self.by_node else _only(labels, by)][edge] += count
        unit = CATALOGUE[expression.metric].unit
        quantiles = {
            labels: quantile(_histogram(unit, counts), expression.quantile) for labels, counts in groups.items()
        }
        return _grouped({labels: value for labels, value in quantiles.items() if value is not None}, by, max)


def read(folder: Path, identities: Mapping[str, Labels], from_s: float, to_s: float) -> Recorded:
    """Read the output of `casstat merge --series`; `identities` maps each node to its labels."""
    recorded = Recorded(from_s=from_s, to_s=to_s)
    for path in folder.glob("values/*/*/*.parquet"):
        for time_s, metric, labels, row in _rows(
            path, identities, from_s - MAX_WINDOW_S - ScrapeInterval.SLOW.value, to_s
        ):
            value = row["value"] if row["value"] is not None else row["real"]
            recorded.values[metric].setdefault(labels, []).append((time_s, value))
    for path in folder.glob("buckets/*/*/*.parquet"):
        for time_s, metric, labels, row in _rows(path, identities, from_s - MAX_WINDOW_S, to_s):
            recorded.buckets[metric].setdefault(labels, []).append((time_s, row["le"], row["count"]))
    return recorded


def _rows(
    path: Path, identities: Mapping[str, Labels], from_s: float, to_s: float
) -> Iterable[tuple[float, str, Labels, dict[str, Any]]]:
    node = path.parent.name.removeprefix("node=")
    bounds = [datetime.fromtimestamp(time_s, timezone.utc) for time_s in (from_s, to_s)]
    table = pq.ParquetFile(path).read().filter((pc.field("time") > bounds[0]) & (pc.field("time") <= bounds[1]))
    for row in table.to_pylist():
        own = tuple(tuple(pair.split("=", 1)) for pair in row["labels"].split(",") if pair)
        yield row["time"].timestamp(), row["metric"], (*identities[node], *own), row


def _gain_per_s(points: Points) -> float:
    return (points[-1][1] - points[0][1]) / (points[-1][0] - points[0][0])


def _histogram(unit: str, counts: Mapping[float, float]) -> Buckets:
    """Return sparse counts as a histogram in the Cassandra bucket layout that contains all their upper bounds."""
    for length in LENGTHS:
        with suppress(LayoutError):
            upper_bounds = upper_bounds_of(unit, length)
            if counts.keys() <= set(upper_bounds):
                return Buckets(upper_bounds, tuple(counts.get(edge, 0.0) for edge in upper_bounds))
    raise ValueError(f"no Cassandra bucket layout has the upper bounds {sorted(counts)}")


def _matches(labels: Labels, where: LabelFilter) -> bool:
    have = dict(labels)
    return all(any(fnmatchcase(have.get(name, ""), value) for value in values) for name, values in where)


def _grouped(series: Values, by: Sequence[str], join: Callable[[list[float]], float]) -> Values:
    groups: dict[Labels, list[float]] = defaultdict(list)
    for labels, value in series.items():
        groups[_only(labels, by)].append(value)
    return {labels: join(values) for labels, values in groups.items()}


def _only(labels: Labels, by: Sequence[str]) -> Labels:
    return tuple((name, value) for name, value in labels if name in by)
