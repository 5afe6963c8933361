"""Expressions in InfluxQL, over the points that the agent's sinks write: see `exporters.sinks.parts.points`.

There are no buckets: percentiles are the nodes' own, of single intervals, and of several the greatest is taken, which
is never less than the true one. They are not merged, and never averaged.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from collector.model.metric import Aggregation
from dashboards.expression import (
    Expression,
    Level,
    Number,
    Quantile,
    Rate,
    Ratio,
    Rest,
    Where,
    aggregation_of,
    metrics_of,
)
from dashboards.promql import NODE_LABELS
from exporters.sinks.parts.points import PER_S, QUANTILES, SHARES, VALUE

_FIELDS = dict(zip(SHARES, QUANTILES, strict=True))
_SPECIAL = re.compile(r"([.+*?()|\[\]{}^$\\/])")


@dataclass(frozen=True)
class Scope:
    """Of which series, and how they are told apart.

    match   conditions that every query has besides the time, such as `"node" =~ /^$node$/`; "" for none.
    by      the tags that stay apart; what begins with $ is Grafana's, and stands for as many as it says.
    time    the condition on the time, and `step` the length of the intervals, as Grafana fills them in.
    """

    match: str = ""
    by: Sequence[str] = ("node",)
    time: str = "$timeFilter"
    step: str = "$__interval"


def spelled(expression: Expression, scope: Scope) -> str:
    """Return the query whose column `value` is the expression.

    Raises KeyError for a share that no point has, and ValueError where it is made of several metrics: InfluxQL does not
    calculate across measurements, and answers with nothing.
    """
    metrics = set(metrics_of(expression))
    if len(metrics) > 1:
        raise ValueError(f"InfluxQL does not calculate across measurements: {', '.join(sorted(metrics))}")
    if not isinstance(expression, Ratio):
        return _together({"value": expression}, scope, in_ratio=False)
    inner = _together({"part": expression.part, "whole": expression.whole}, scope, in_ratio=True)
    tags = ", ".join(map(_tag, scope.by))
    # What is divided by 0 would be 0. The time is bounded inside: bounds that fall between two steps would lose all.
    return f'SELECT "part" / "whole" AS "value" FROM ({inner}) WHERE "whole" > 0 GROUP BY {tags}'  # noqa: S608


def _together(columns: Mapping[str, Expression], scope: Scope, *, in_ratio: bool) -> str:
    """Return the query that has these columns, of the same times and tags."""
    inner: list[str] = []
    texts = ", ".join(f'{_outer(each, scope, inner, in_ratio)} AS "{name}"' for name, each in columns.items())
    groups = ", ".join((f"time({scope.step})", *map(_tag, scope.by)))
    inside = ", ".join(inner)
    # Nothing in it comes from outside.
    return f"SELECT {texts} FROM {inside} WHERE {scope.time} GROUP BY {groups} fill(none)"  # noqa: S608


def _outer(expression: Expression, scope: Scope, inner: list[str], in_ratio: bool) -> str:
    """Return what is selected, and add the queries that it is selected from."""
    if isinstance(expression, Ratio):
        part, whole = (_outer(each, scope, inner, True) for each in (expression.part, expression.whole))
        return f"{part} / {whole}"
    if isinstance(expression, Rest):
        whole, part = (_outer(each, scope, inner, in_ratio) for each in (expression.whole, expression.part))
        return f"({whole} - {part})"
    if isinstance(expression, Number):
        return f"{expression.value:g}"
    name = f"v{len(inner)}"
    query = _each(expression, name, scope)
    across = "max" if isinstance(expression, Quantile) else aggregation_of(expression).value
    if isinstance(expression, Rate):
        across = "sum" if in_ratio else across
        if expression.within != across and set(NODE_LABELS) <= set(scope.by):
            across = expression.within
        elif expression.within != across:
            query = _of_nodes(query, expression.within, name, scope)
    inner.append(f"({query})")
    return f'{across}("{name}")'


def _of_nodes(query: str, within: str, name: str, scope: Scope) -> str:
    """Return the query that joins the series of each node."""
    labels = dict.fromkeys((*NODE_LABELS, *(label for label in scope.by if not label.startswith("$"))))
    groups = ", ".join((f"time({scope.step})", *map(_tag, labels)))
    return f'SELECT {within}("{name}") AS "{name}" FROM ({query}) WHERE {scope.time} GROUP BY {groups} fill(none)'  # noqa: S608


def _each(expression: Rate | Level | Quantile, name: str, scope: Scope) -> str:
    """Return the query for each series by itself: its mean, or its greatest percentile, in each interval."""
    if isinstance(expression, Quantile):
        function, field = "max", _FIELDS[expression.share]
    elif isinstance(expression, Rate):
        function, field = "mean", PER_S
    else:
        across = aggregation_of(expression)
        function, field = "mean" if across is Aggregation.SUM else across.value, VALUE
    given = " AND ".join(part for part in (scope.time, scope.match, _conditions(expression.where)) if part)
    selected = f'{function}("{field}") AS "{name}"'
    return f'SELECT {selected} FROM "{expression.metric}" WHERE {given} GROUP BY time({scope.step}), * fill(none)'  # noqa: S608


def _tag(tag: str) -> str:
    return tag if tag.startswith("$") else f'"{tag}"'


def _conditions(where: Where) -> str:
    return " AND ".join(_condition(name, values) for name, values in where)


def _condition(name: str, values: tuple[str, ...]) -> str:
    if len(values) == 1 and not values[0].endswith("*"):
        text = values[0].replace("\\", "\\\\").replace("'", "\\'")
        return f"\"{name}\" = '{text}'"
    patterns = [f"{_escaped(value[:-1])}.*" if value.endswith("*") else _escaped(value) for value in values]
    return f'"{name}" =~ /^({"|".join(patterns)})$/'


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
