"""Builds alerts from signals and thresholds, and the recording rules for the burn rates of latency objectives.

A burn rate is the ratio of slow requests over a window. The first rule sums the buckets of all nodes. The other rules
read the few series that it records, not those of every node.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dashboards.expression import Expression, LabelFilter, Quantile, Rate, Ratio, where
from dashboards.promql import NODE_LABELS, Scope, render, selector
from dashboards.signals.all_signals import SIGNALS
from dashboards.thresholds import MIN_EVENTS_PER_S, OBJECTIVES, THRESHOLDS, Objective
from exporters.metrics_page.metric_family import LABELLED_LENGTH, UpperBounds

# The rates of a node's requests, writes and tasks, with which alerts compare the rates of errors.
TRAFFIC = {
    "requests": Rate("cassandra_client_requests_total"),
    "writes": Rate("cassandra_client_requests_total", where(operation="Write")),
    # Reads and writes of a node's local data, on behalf of any coordinator.
    "tasks": Rate(
        "cassandra_pool_completed_total",
        where(path="request", pool=("ReadStage", "MutationStage", "CounterMutationStage")),
    ),
}
JOB = "casstat"
"""The default name of the agents' scrape job."""
WINDOW = "5m"
"""The range for rates: five scrapes if Prometheus scrapes once a minute."""
WARNING, CRITICAL = "warning", "critical"
SEVERITIES = (WARNING, CRITICAL)
CLUSTER = ("cluster",)
TABLE = ("cluster", "keyspace", "table")
WHERE = (
    "{{ $labels.node }}{{ if $labels.cluster }} ({{ $labels.cluster }}, {{ $labels.dc }}, {{ $labels.rack }}){{ end }}"
)
"""The template that names a node in a description; the other labels are empty until the node has answered once."""
RATE = '{{ printf "%.3f" $value }}'
"""The template for a value per second; `humanize` would print 0.0146 as 14.6m."""


def job_matcher(job: str) -> str:
    """Return the label matcher that selects the series of a scrape job."""
    return f"job={json.dumps(job, ensure_ascii=False)}"


MATCH = job_matcher(JOB)


@dataclass(frozen=True)
class Alert:
    """An alert with one severity.

    threshold    the key of its row in `dashboards.thresholds`.
    bound        the value in that row for this severity.
    summary      a one-line Prometheus template that does not use the value.
    description  a one-line Prometheus template that may use the value.
    by           the labels of its series, which identify an instance of the alert.
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
        """The time for which the condition must hold, in seconds."""
        return THRESHOLDS[self.threshold].for_s


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
    """Return the alerts on the query `value`: one for each severity in the threshold's row.

    by     the labels of the query's series.
    only   the single severity to return; "" for all.
    also   a further condition that begins with `and` or `unless`; $bound and $ratio stand for the bound and the minimum
           ratio of the alert's severity.
    """
    row = THRESHOLDS[threshold]
    bounds = {WARNING: row.warning, CRITICAL: row.critical}
    min_ratios = dict(zip(SEVERITIES, row.min_ratios, strict=True))
    return tuple(
        Alert(
            name,
            severity,
            threshold,
            bound,
            f"{value} {'<' if row.below else '>'} {format_number(bound)}{' ' if also else ''}"
            + also.replace("$bound", format_number(bound)).replace("$ratio", format_number(min_ratios[severity])),
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
    labels: Sequence[str] = (),
    by: Sequence[str] = NODE_LABELS,
    *,
    summary: str = "",
    only: str = "",
    also: str = "",
) -> tuple[Alert, ...]:
    """Return the alerts on a signal beyond its threshold; `labels` distinguish series in addition to those in `by`.

    The default summary is the signal's title. A signal that is bad when it is low needs a summary of its own, because
    its title would suggest the opposite.
    """
    row = SIGNALS[signal]
    grouping = (*by, *labels)
    query = rule_query(row.expression, grouping)
    conditions = " ".join(part for part in (also, _traffic_condition(row.expression, signal, grouping)) if part)
    location = " / ".join(f"{{{{ $labels.{label} }}}}" for label in (by if by != NODE_LABELS else ("node",)))
    summary = summary or f"{row.title}: {location}"
    return threshold_alerts(name, signal, query, summary, description, by=grouping, only=only, also=conditions)


def _traffic_condition(expression: Expression, signal: str, labels: Sequence[str]) -> str:
    """Return the condition under which a percentile or an error rate is significant; "" for any other signal.

    A percentile needs enough events; an error rate needs a minimum ratio of errors to traffic.
    """
    if isinstance(expression, Quantile):
        events = Rate(f"{expression.metric}_bucket", (*expression.where, ("le", ("+Inf",))))
        return f"and {rule_query(events, labels)} > {format_number(MIN_EVENTS_PER_S)}"
    if (traffic := THRESHOLDS[signal].traffic) and isinstance(expression, Rate):
        return f"and on ({', '.join(NODE_LABELS)}) {rule_query(Ratio(expression, TRAFFIC[traffic]))} > $ratio"
    return ""


def rule_query(expression: Expression, by: Sequence[str] = NODE_LABELS) -> str:
    """Return the PromQL for an expression over series of the agents' scrape job."""
    return render(expression, Scope(MATCH, by, WINDOW))


def agent_series(metric: str, where: LabelFilter = ()) -> str:
    """Return the selector for one of the agents' self-metrics."""
    return selector(metric, where, MATCH)


def aggregate(function: str, query: str, by: Sequence[str] = NODE_LABELS) -> str:
    """Return a query that aggregates `query` with `function`: "max", "min", "sum" or "count"."""
    return f"{function} by ({', '.join(by)}) ({query})"


def format_number(value: float) -> str:
    """Return a number as PromQL text; a whole number has no decimal point."""
    return str(int(value)) if value == int(value) else f"{value:.12g}"


DURATION = "cassandra_client_request_duration_seconds_bucket"
BUCKETS = f"cluster_dc_operation_le:{DURATION}:rate{WINDOW}"
BY = ("cluster", "dc")
SLOW = "cluster_dc_operation:cassandra_client_request_slow"
WINDOWS = {WARNING: ("1d", "2h"), CRITICAL: ("1h", WINDOW)}
"""The long and the short window by severity; the burn rate must exceed its threshold in both."""


@dataclass(frozen=True)
class RecordingRule:
    """A recorded series: its name, its query, and labels that distinguish series with the same name."""

    name: str
    query: str
    labels: Mapping[str, str] = field(default_factory=dict)


def ratio_name(window: str) -> str:
    """Return the name of the recorded ratio of slow requests over a window."""
    return f"{SLOW}:ratio_rate{window}"


def nearest_le(bound_s: float) -> str:
    """Return the `le` label nearest to `bound_s`; the labels are the same for all Cassandra versions.

    Raises ValueError for a bound that is not one of the agent's defaults.
    """
    if bound_s not in UpperBounds().seconds:
        raise ValueError(f"{bound_s:g} s: not an upper bound of the agent's histograms (hint: choose one of DEFAULT_S)")
    return UpperBounds((bound_s,)).bounds("seconds", LABELLED_LENGTH)[0].le


def burn_rate_rules() -> tuple[RecordingRule, ...]:
    """Return the rules in evaluation order."""
    buckets = f"sum by ({', '.join((*BY, 'operation', 'le'))}) (rate({selector(DURATION, (), MATCH)}[{WINDOW}]))"
    windows = sorted({window for pair in WINDOWS.values() for window in pair}, key=_length)
    shares = (
        RecordingRule(ratio_name(window), _slow_ratio(objective, window), {"operation": objective.operation})
        for objective in OBJECTIVES.values()
        for window in windows
    )
    return RecordingRule(BUCKETS, buckets), *shares


def _slow_ratio(objective: Objective, window: str) -> str:
    """Return the query for the ratio of slow requests; it has no result if there are too few requests."""

    def total(function: str, le: str) -> str:
        series = selector(BUCKETS, where(operation=objective.operation, le=le))
        inside = series if window == WINDOW else f"{function}({series}[{window}])"
        return f"sum by ({', '.join(BY)}) ({inside})"

    fast, every = total("sum_over_time", nearest_le(objective.bound_s)), total("sum_over_time", "+Inf")
    return f"1 - {fast} / ({every} and {total('avg_over_time', '+Inf')} > {objective.min_per_s:g})"


def _length(window: str) -> int:
    return int(window[:-1]) * {"m": 1, "h": 60, "d": 1440}[window[-1]]
