"""Expressions in PromQL, which Prometheus and VictoriaMetrics answer."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from collector.catalogue import CATALOGUE
from collector.model.metric import Aggregation, Metric, Owner
from dashboards.expression import Expression, Number, Quantile, Rate, Ratio, Rest, Where, aggregation_of
from exporters.prometheus.metric_family import PLACEMENT

FUNCTIONS = {Aggregation.SUM: "sum", Aggregation.MEAN: "avg", Aggregation.MAX: "max", Aggregation.MIN: "min"}
NODE_LABELS = ("cluster", "dc", "rack", "node")
# What a regular expression would take for more than itself.
_SPECIAL = re.compile(r"([.+*?()|\[\]{}^$\\])")


@dataclass(frozen=True)
class Scope:
    """Of which series, and how they are told apart.

    match   label matchers that every selector has, such as `cluster=~"$cluster",node=~"$node"`; "" for none.
    by      the labels that stay apart: all others are added up.
    window  what rates are taken over: $__rate_interval in a panel, a duration in a rule.
    """

    match: str = ""
    by: Sequence[str] = NODE_LABELS
    window: str = "5m"


def spelled(expression: Expression, scope: Scope) -> str:
    """Return an expression in PromQL: one series for each combination of `scope.by` that there is."""
    return _spelled(expression, scope, in_ratio=False)


def _spelled(expression: Expression, scope: Scope, *, in_ratio: bool) -> str:
    if isinstance(expression, Ratio):
        part, whole = (_inner(each, scope, in_ratio=True) for each in (expression.part, expression.whole))
        return f"{part} / {whole}"
    if isinstance(expression, Rest):
        whole, part = (_inner(each, scope, in_ratio=in_ratio) for each in (expression.whole, expression.part))
        return f"{whole} - {part}"
    if isinstance(expression, Number):
        return f"{expression.value:g}"
    if isinstance(expression, Quantile):
        buckets = f"rate({selector(f'{expression.metric}_bucket', expression.where, scope.match)}[{scope.window}])"
        text = f"histogram_quantile({expression.share:g}, sum by ({', '.join(('le', *scope.by))}) ({buckets}))"
        return f"ceil({text})" if _counts_things(expression.metric) else text
    series = selector(expression.metric, expression.where, scope.match)
    across = FUNCTIONS[aggregation_of(expression)]
    within = across
    if isinstance(expression, Rate):
        series, within = f"rate({series}[{scope.window}])", expression.within
        across = "sum" if in_ratio else across
    if set(NODE_LABELS) <= set(scope.by):
        return f"{within} by ({', '.join(scope.by)}) ({series})"
    metric = CATALOGUE.get(expression.metric)
    if metric is not None and metric.owner is not Owner.NODE and across in ("sum", "avg"):
        return _counted_once(series, metric, within, across, scope.by)
    return _across_nodes(series, within, across, scope.by)


def _across_nodes(series: str, within: str, across: str, by: Sequence[str]) -> str:
    """Return the query that joins the series of each node, and then the nodes."""
    if within != across:
        # Grafana's variables stand for some of the nodes' labels.
        labels = dict.fromkeys((*NODE_LABELS, *(label for label in by if not label.startswith("$"))))
        series = f"{within} by ({', '.join(labels)}) ({series})"
    return f"{across} by ({', '.join(by)}) ({series})"


def _counted_once(series: str, metric: Metric, within: str, across: str, by: Sequence[str]) -> str:
    """Return the query that takes what several nodes report of one machine once, and then joins the machines."""
    owner = ("machine", "network") if metric.owner is Owner.NETWORK else ("machine",)
    placed = f"{series} * on (job, instance) group_left ({', '.join(owner)}) {PLACEMENT}_info"
    labels = dict.fromkeys((*by, *owner, *(metric.labels if within == across else ())))
    return f"{across} by ({', '.join(by)}) (max by ({', '.join(labels)}) ({placed}))"


def selector(metric: str, where: Where = (), match: str = "") -> str:
    """Return what selects a metric's series with these label values, and `match`."""
    inside = ",".join(part for part in (match, *(_matcher(name, values) for name, values in where)) if part)
    return f"{metric}{{{inside}}}" if inside else metric


def _matcher(name: str, values: tuple[str, ...]) -> str:
    if len(values) == 1 and not values[0].endswith("*"):
        return f'{name}="{_quoted(values[0])}"'
    patterns = [f"{_escaped(value[:-1])}.*" if value.endswith("*") else _escaped(value) for value in values]
    return f'{name}=~"{_quoted("|".join(patterns))}"'


def _counts_things(metric: str) -> bool:
    """Return whether a histogram's values are whole numbers, such as tombstones: no percentile lies between two."""
    row = CATALOGUE.get(metric)
    return row is not None and row.unit == "1"


def _inner(expression: Expression, scope: Scope, *, in_ratio: bool) -> str:
    text = _spelled(expression, scope, in_ratio=in_ratio)
    return f"({text})" if isinstance(expression, Ratio | Rest) else text


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
