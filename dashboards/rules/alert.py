"""One alert, and how the rows of a subject make theirs of a signal and its threshold."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from dashboards.expression import Expression, Where
from dashboards.promql import NODE_LABELS, Scope, selector, spelled
from dashboards.signals.table import SIGNALS
from dashboards.thresholds import THRESHOLDS

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
    """

    name: str
    severity: str
    threshold: str
    bound: float
    expr: str
    summary: str
    description: str

    @property
    def for_s(self) -> float:
        """How long it must be so, seconds."""
        return THRESHOLDS[self.threshold].for_s


def alerts(
    name: str,
    threshold: str,
    value: str,
    summary: str,
    description: str,
    *,
    only: str = "",
    also: str = "",
) -> tuple[Alert, ...]:
    """Return the alert that `value`, a query, is beyond a threshold: one for each severity that has one.

    only   this severity, whatever the table has.
    also   what must hold besides, beginning with `and` or `unless`; $bound stands for the threshold.
    """
    row = THRESHOLDS[threshold]
    bounds = {WARNING: row.warning, CRITICAL: row.critical}
    return tuple(
        Alert(
            name,
            severity,
            threshold,
            bound,
            f"{value} {'<' if row.below else '>'} {number(bound)}{' ' if also else ''}"
            + also.replace("$bound", number(bound)),
            summary,
            description,
        )
        for severity, bound in bounds.items()
        if bound is not None and only in ("", severity)
    )


def of_signal(
    name: str,
    signal: str,
    description: str,
    each: Sequence[str] = (),
    by: Sequence[str] = NODE_LABELS,
    *,
    only: str = "",
    also: str = "",
) -> tuple[Alert, ...]:
    """Return the alert on a signal, with its own threshold; `each` are labels that stay apart beside those of `by`."""
    row = SIGNALS[signal]
    query = asked(row.expression, (*by, *each))
    return alerts(name, signal, query, f"{row.title}: {_place(by)}", description, only=only, also=also)


def asked(expression: Expression, by: Sequence[str] = NODE_LABELS, window: str = WINDOW) -> str:
    """Return an expression as rules have it."""
    return spelled(expression, Scope(MATCH, by, window))


def own(metric: str, where: Where = ()) -> str:
    """Return what selects the series of a metric that the agent tells of itself."""
    return selector(metric, where, MATCH)


def across(function: str, query: str, by: Sequence[str] = NODE_LABELS) -> str:
    """Return `query` brought together: "max", "min", "sum" or "count"."""
    return f"{function} by ({', '.join(by)}) ({query})"


def number(value: float) -> str:
    """Return a number as rules have it."""
    return str(int(value)) if value == int(value) else f"{value:.12g}"


def _place(by: Sequence[str]) -> str:
    return " / ".join(f"{{{{ $labels.{label} }}}}" for label in (by if by != NODE_LABELS else ("node",)))
