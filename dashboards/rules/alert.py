"""One alert, and how a signal and its threshold become alerts."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from dashboards.expression import Expression, LabelFilter, Quantile, Rate, Ratio
from dashboards.promql import NODE_LABELS, Scope, render, selector
from dashboards.rules.traffic import TRAFFIC
from dashboards.signals.all_signals import SIGNALS
from dashboards.thresholds import MIN_EVENTS_PER_S, THRESHOLDS

JOB = "casstat"
"""The default name of the job that scrapes the agents in Prometheus' configuration."""


def job_matcher(job: str) -> str:
    """Return the label matcher that selects the series of this job."""
    return f"job={json.dumps(job, ensure_ascii=False)}"


MATCH = job_matcher(JOB)
WINDOW = "5m"
"""What rates are taken over: five scrapes, where those come once a minute."""
WARNING, CRITICAL = "warning", "critical"
SEVERITIES = (WARNING, CRITICAL)

CLUSTER = ("cluster",)
TABLE = ("cluster", "keyspace", "table")
WHERE = "{{ $labels.node }} ({{ $labels.cluster }}, {{ $labels.dc }}, {{ $labels.rack }})"
"""Names a node in a description."""


@dataclass(frozen=True)
class Alert:
    """One alert of one severity.

    threshold    the row of `dashboards.thresholds` that it compares with, and `bound` the number from there.
    summary      one line without numbers, and `description` one with them; both as Prometheus' templates.
    by           the labels of its series: what tells one instance of the alert from another.
    """

    name: str
    severity: str
    threshold: str
    bound: float
    expr: str
    summary: str
    description: str
    by: tuple[str, ...] = NODE_LABELS

    @property
    def for_s(self) -> float:
        """How long it must be so, seconds."""
        return THRESHOLDS[self.threshold].for_s

    @property
    def min_ratio(self) -> float:
        """The part of the traffic that must be exceeded besides; 0 for none."""
        return THRESHOLDS[self.threshold].min_ratios[self.severity == CRITICAL]


def threshold_alerts(
    name: str,
    threshold: str,
    value: str,
    summary: str,
    description: str,
    *,
    by: Sequence[str] = NODE_LABELS,
    only: str = "",
    also: str = "",
) -> tuple[Alert, ...]:
    """Return the alert that `value`, a query, is beyond a threshold: one for each severity that has one.

    by     the labels of the query's series.
    only   this severity, whatever the table has.
    also   a further condition that begins with `and` or `unless`; $bound and $ratio stand for the table's numbers.
    """
    row = THRESHOLDS[threshold]
    bounds = {WARNING: row.warning, CRITICAL: row.critical}
    shares = dict(zip(SEVERITIES, row.min_ratios, strict=True))
    return tuple(
        Alert(
            name,
            severity,
            threshold,
            bound,
            f"{value} {'<' if row.below else '>'} {format_number(bound)}{' ' if also else ''}"
            + also.replace("$bound", format_number(bound)).replace("$ratio", format_number(shares[severity])),
            summary,
            description,
            tuple(by),
        )
        for severity, bound in bounds.items()
        if bound is not None and only in ("", severity)
    )


def signal_alerts(
    name: str,
    signal: str,
    description: str,
    each: Sequence[str] = (),
    by: Sequence[str] = NODE_LABELS,
    *,
    summary: str = "",
    only: str = "",
    also: str = "",
) -> tuple[Alert, ...]:
    """Return the alert on a signal, with its own threshold; `each` are labels that stay apart beside those of `by`.

    The summary is the signal's title, unless another is given: of a signal whose low values are bad the title says the
    opposite of what happened.
    """
    row = SIGNALS[signal]
    labels = (*by, *each)
    query = rule_query(row.expression, labels)
    conditions = " ".join(part for part in (also, _traffic_condition(row.expression, signal, labels)) if part)
    summary = summary or f"{row.title}: {_location(by)}"
    return threshold_alerts(name, signal, query, summary, description, by=labels, only=only, also=conditions)


def _traffic_condition(expression: Expression, signal: str, labels: Sequence[str]) -> str:
    """Return the condition that there are enough events, or that errors are a large enough part of the traffic."""
    if isinstance(expression, Quantile):
        events = Rate(f"{expression.metric}_bucket", (*expression.where, ("le", ("+Inf",))))
        return f"and {rule_query(events, labels)} > {format_number(MIN_EVENTS_PER_S)}"
    if (whole := THRESHOLDS[signal].traffic) and isinstance(expression, Rate):
        return f"and on ({', '.join(NODE_LABELS)}) {rule_query(Ratio(expression, TRAFFIC[whole]))} > $ratio"
    return ""


def rule_query(expression: Expression, by: Sequence[str] = NODE_LABELS, window: str = WINDOW) -> str:
    """Return an expression as rules have it."""
    return render(expression, Scope(MATCH, by, window))


def agent_series(metric: str, where: LabelFilter = ()) -> str:
    """Return what selects the series of a metric that the agent tells of itself."""
    return selector(metric, where, MATCH)


def aggregate(function: str, query: str, by: Sequence[str] = NODE_LABELS) -> str:
    """Return `query` brought together: "max", "min", "sum" or "count"."""
    return f"{function} by ({', '.join(by)}) ({query})"


def format_number(value: float) -> str:
    """Return a number as rules have it."""
    return str(int(value)) if value == int(value) else f"{value:.12g}"


def _location(by: Sequence[str]) -> str:
    return " / ".join(f"{{{{ $labels.{label} }}}}" for label in (by if by != NODE_LABELS else ("node",)))
