"""Renders expressions as PromQL for Prometheus and VictoriaMetrics."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from collector.model.metric import Aggregation, Metric, Owner
from collector.node.catalogue import CATALOGUE
from dashboards.expression import Constant, Difference, Expression, LabelFilter, Quantile, Rate, Ratio, aggregation_of
from exporters.metrics_page.metric_family import PLACEMENT

FUNCTIONS = {Aggregation.SUM: "sum", Aggregation.MEAN: "avg", Aggregation.MAX: "max", Aggregation.MIN: "min"}
NODE_LABELS = ("cluster", "dc", "rack", "node")
# Ticks are on whole seconds, as are the steps of a panel. Prometheus 2 includes both ends of a range, so ranges end
# between two ticks: a range of two seconds then has exactly two samples.
AHEAD = " offset -500ms"
# Characters with a special meaning in regular expressions.
_SPECIAL = re.compile(r"([.+*?()|\[\]{}^$\\])")


@dataclass(frozen=True)
class Scope:
    """The series to select, their grouping and the range of rates.

    match   label matchers for every selector, such as `cluster=~"$cluster",node=~"$node"`; "" for none.
    by      the labels of the result; series that differ only in other labels are aggregated.
    window  the range of a rate.
    sparse  a longer range, in which the last two samples are used if a series has fewer than two in the window; "" for
            none.
    """

    match: str = ""
    by: Sequence[str] = NODE_LABELS
    window: str = "5m"
    sparse: str = ""


def render(expression: Expression, scope: Scope) -> str:
    """Return an expression in PromQL that yields one series per combination of values of the labels in `scope.by`."""
    return _render(expression, scope, in_ratio=False)


def _render(expression: Expression, scope: Scope, *, in_ratio: bool) -> str:
    if isinstance(expression, Ratio):
        left, right = (_operand(side, scope, in_ratio=True) for side in (expression.left, expression.right))
        return f"{left} / {right}"
    if isinstance(expression, Difference):
        left, right = (_operand(side, scope, in_ratio=in_ratio) for side in (expression.left, expression.right))
        return f"{left} - {right}"
    if isinstance(expression, Constant):
        return f"{expression.value:g}"
    if isinstance(expression, Quantile):
        buckets = rate(selector(f"{expression.metric}_bucket", expression.where, scope.match), scope)
        text = f"histogram_quantile({expression.quantile:g}, sum by ({', '.join(('le', *scope.by))}) ({buckets}))"
        return f"ceil({text})" if _is_whole_number(expression.metric) else text
    series = selector(expression.metric, expression.where, scope.match)
    across_nodes = FUNCTIONS[aggregation_of(expression)]
    within_node = across_nodes
    if isinstance(expression, Rate):
        series, within_node = rate(series, scope), expression.within_node
        across_nodes = "sum" if in_ratio else across_nodes
    if set(NODE_LABELS) <= set(scope.by):
        return f"{within_node} by ({', '.join(scope.by)}) ({series})"
    metric = CATALOGUE.get(expression.metric)
    if metric is not None and metric.owner is not Owner.NODE and across_nodes in ("sum", "avg"):
        return _deduplicated(series, metric, within_node, across_nodes, scope.by)
    return _aggregated(series, within_node, across_nodes, scope.by)


def rate(series: str, scope: Scope) -> str:
    """Return the query for the increase of each series per second."""
    if not scope.sparse:
        return f"rate({series}[{scope.window}])"
    return f"(rate({series}[{scope.window}]{AHEAD}) or irate({series}[{scope.sparse}]{AHEAD}))"


def _aggregated(series: str, within_node: str, across_nodes: str, by: Sequence[str]) -> str:
    """Return the query that aggregates each node's series first and then the nodes."""
    if within_node != across_nodes:
        # Grafana variables are omitted, because they stand for labels that are in NODE_LABELS.
        labels = dict.fromkeys((*NODE_LABELS, *(label for label in by if not label.startswith("$"))))
        series = f"{within_node} by ({', '.join(labels)}) ({series})"
    return f"{across_nodes} by ({', '.join(by)}) ({series})"


def _deduplicated(series: str, metric: Metric, within_node: str, across_nodes: str, by: Sequence[str]) -> str:
    """Return the query that aggregates one copy of each series that several nodes on a machine report.

    If the aggregation within a node differs from the one across nodes, only the highest series per machine counts.
    """
    owner = ("machine", "network") if metric.owner is Owner.NETWORK else ("machine",)
    placed = f"{series} * on (job, instance) group_left ({', '.join(owner)}) {PLACEMENT}_info"
    labels = dict.fromkeys((*by, *owner, *(metric.labels if within_node == across_nodes else ())))
    return f"{across_nodes} by ({', '.join(by)}) (max by ({', '.join(labels)}) ({placed}))"


def selector(metric: str, where: LabelFilter = (), match: str = "") -> str:
    """Return the selector for a metric's series with the label values `where` and the matchers `match`."""
    inside = ",".join(part for part in (match, *(_matcher(name, values) for name, values in where)) if part)
    return f"{metric}{{{inside}}}" if inside else metric


def _matcher(name: str, values: tuple[str, ...]) -> str:
    if len(values) == 1 and "*" not in values[0]:
        return f'{name}="{_quoted(values[0])}"'
    patterns = [".*".join(map(_escaped, value.split("*"))) for value in values]
    return f'{name}=~"{_quoted("|".join(patterns))}"'


def _is_whole_number(metric: str) -> bool:
    """Return whether a histogram counts items, such as tombstones, so that its percentiles are whole numbers."""
    row = CATALOGUE.get(metric)
    return row is not None and row.unit == "1"


def _operand(expression: Expression, scope: Scope, *, in_ratio: bool) -> str:
    text = _render(expression, scope, in_ratio=in_ratio)
    return f"({text})" if isinstance(expression, Ratio | Difference) else text


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
