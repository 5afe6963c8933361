"""Renders expressions as InfluxQL over the points that sinks write: see `exporters.sinks.parts.points`.

The points contain each node's percentiles per interval instead of histogram buckets. Where several percentiles fall
into one step, the query takes their maximum, which is never below the true percentile. Percentiles are never averaged.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from collector.model.metric import Aggregation, Owner
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
from exporters.sinks.parts.points import MACHINE, NETWORK, PER_S, QUANTILES, SHARES, VALUE

_FIELDS = dict(zip(SHARES, QUANTILES, strict=True))
_SPECIAL = re.compile(r"([.+*?()|\[\]{}^$\\/])")


@dataclass(frozen=True)
class Scope:
    """The series to select and their grouping.

    match   the conditions that each query has besides the time condition, such as `"node" =~ /^$node$/`; "" for none.
    by      the tags of the result; a Grafana variable ($…) may stand for several.
    time    the time condition.
    step    the length of the steps, optionally followed by an offset that aligns them.
    """

    match: str = ""
    by: Sequence[str] = ("node",)
    time: str = "$timeFilter"
    step: str = "$__interval"


def render(expression: Expression, scope: Scope) -> str:
    """Return the query that yields the values of an expression in the `value` column.

    Raises KeyError for a quantile that the points do not contain. Raises ValueError for an expression over several
    metrics, because InfluxQL has no arithmetic across measurements and would return nothing.
    """
    metrics = set(metrics_of(expression))
    if len(metrics) > 1:
        raise ValueError(f"InfluxQL has no arithmetic across measurements: {', '.join(sorted(metrics))}")
    if not isinstance(expression, Ratio):
        return _select({"value": expression}, scope, in_ratio=False)
    inner = _select({"part": expression.left, "whole": expression.right}, scope, in_ratio=True)
    tags = ", ".join(map(_tag, scope.by))
    # Exclude zero denominators, because InfluxQL's division by 0 yields 0. The outer query has no time condition,
    # because such a condition would drop the first step whenever the time range begins in the middle of a step.
    return f'SELECT "part" / "whole" AS "value" FROM ({inner}) WHERE "whole" > 0 GROUP BY {tags}'  # noqa: S608


def clamp(value: str) -> str:
    """Return an expression that limits a value to the range 0 to 1.

    Neither InfluxQL nor Grafana's math expressions have a clamp function.
    """
    return f"(abs({value}) - abs({value} - 1) + 1) / 2"


def clamped(query: str, by: Sequence[str]) -> str:
    """Return a query for the values of `query`, limited to the range 0 to 1."""
    selected = clamp('"value"')
    return f'SELECT {selected} AS "value" FROM ({query}) GROUP BY {", ".join(map(_tag, by))}'  # noqa: S608


def nonzero(query: str, by: Sequence[str]) -> str:
    """Return a query for the nonzero values of `query`."""
    return f'SELECT "value" FROM ({query}) WHERE "value" != 0 GROUP BY {", ".join(map(_tag, by))}'  # noqa: S608


def _select(columns: Mapping[str, Expression], scope: Scope, *, in_ratio: bool) -> str:
    """Return the query for several columns with the same times and tags."""
    inner: list[str] = []
    fields = ", ".join(
        f'{_field(expression, scope, inner, in_ratio)} AS "{name}"' for name, expression in columns.items()
    )
    groups = ", ".join((f"time({scope.step})", *map(_tag, scope.by)))
    sources = ", ".join(inner)
    # Injection is impossible, because the query contains no user input.
    return f"SELECT {fields} FROM {sources} WHERE {scope.time} GROUP BY {groups} fill(none)"  # noqa: S608


def _field(expression: Expression, scope: Scope, inner: list[str], in_ratio: bool) -> str:
    """Return the field to select, and append to `inner` the subqueries that it requires."""
    if isinstance(expression, Ratio):
        left, right = (_field(side, scope, inner, True) for side in (expression.left, expression.right))
        return f"{left} / {right}"
    if isinstance(expression, Difference):
        left, right = (_field(side, scope, inner, in_ratio) for side in (expression.left, expression.right))
        return f"({left} - {right})"
    if isinstance(expression, Constant):
        return f"{expression.value:g}"
    name = f"v{len(inner)}"
    across_nodes = "max" if isinstance(expression, Quantile) else aggregation_of(expression).value
    if in_ratio and isinstance(expression, Rate):
        across_nodes = "sum"
    within_node = expression.within_node if isinstance(expression, Rate) else across_nodes
    if set(NODE_LABELS) <= set(scope.by):
        across_nodes = within_node
    inner += [f"({query})" for query in _sources(expression, name, scope, within_node, across_nodes)]
    return f'{across_nodes}("{name}")'


def _sources(
    expression: Rate | Gauge | Quantile, name: str, scope: Scope, within_node: str, across_nodes: str
) -> Iterator[str]:
    """Yield the queries whose results are aggregated across nodes."""
    condition, metric = "", CATALOGUE.get(expression.metric)
    is_single_node = set(NODE_LABELS) <= set(scope.by)
    if metric and metric.owner is not Owner.NODE and across_nodes in ("sum", "mean") and not is_single_node:
        series = _series_query(expression, name, scope, f"\"{MACHINE}\" != ''")
        # Keep one copy of each series that several nodes on a machine report; if the aggregation within a node differs
        # from the one across nodes, keep only the maximum of all such series on a machine.
        owner = (MACHINE, NETWORK) if metric.owner is Owner.NETWORK else (MACHINE,)
        labels = (*scope.by, *owner, *(metric.labels if within_node == across_nodes else ()))
        yield _regrouped(series, "max", name, labels, scope)
        # The second query selects points without a machine tag. Either their machine is unknown, or an older agent
        # wrote them.
        condition = f"\"{MACHINE}\" = ''"
    series = _series_query(expression, name, scope, condition)
    node_labels = (*NODE_LABELS, *(label for label in scope.by if not label.startswith("$")))
    yield series if within_node == across_nodes else _regrouped(series, within_node, name, node_labels, scope)


def _regrouped(query: str, function: str, name: str, labels: Iterable[str], scope: Scope) -> str:
    """Return the query that aggregates the values of another one by these labels."""
    groups = ", ".join((f"time({scope.step})", *map(_tag, dict.fromkeys(labels))))
    return f'SELECT {function}("{name}") AS "{name}" FROM ({query}) WHERE {scope.time} GROUP BY {groups} fill(none)'  # noqa: S608


def _series_query(expression: Rate | Gauge | Quantile, name: str, scope: Scope, condition: str) -> str:
    """Return the query that aggregates the values of each individual series per step."""
    if isinstance(expression, Quantile):
        function, field = "max", _FIELDS[expression.quantile]
    elif isinstance(expression, Rate):
        function, field = "mean", PER_S
    else:
        across_nodes = aggregation_of(expression)
        function, field = "mean" if across_nodes is Aggregation.SUM else across_nodes.value, VALUE
    parts = (scope.time, scope.match, _conditions(expression.where), condition)
    conditions = " AND ".join(part for part in parts if part)
    selected = f'{function}("{field}") AS "{name}"'
    return f'SELECT {selected} FROM "{expression.metric}" WHERE {conditions} GROUP BY time({scope.step}), * fill(none)'  # noqa: S608


def _tag(tag: str) -> str:
    return tag if tag.startswith("$") else f'"{tag}"'


def _conditions(where: LabelFilter) -> str:
    return " AND ".join(_condition(name, values) for name, values in where)


def _condition(name: str, values: tuple[str, ...]) -> str:
    if len(values) == 1 and "*" not in values[0]:
        text = values[0].replace("\\", "\\\\").replace("'", "\\'")
        return f"\"{name}\" = '{text}'"
    patterns = [".*".join(map(_escaped, value.split("*"))) for value in values]
    return f'"{name}" =~ /^({"|".join(patterns)})$/'


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
