"""Alerts on the agents. The alerts on Cassandra depend on the agents' data."""

from dashboards.promql import NODE_LABELS
from dashboards.rules.alert import MATCH, RATE, WHERE, WINDOW, agent_series, aggregate, threshold_alerts
from dashboards.rules.alerts.cluster import ANSWERS

_SINK = (*NODE_LABELS, "sink")
_LATENESS = agent_series("casstat_tick_lateness_seconds_bucket")
_LATENESS_BUCKETS = aggregate("sum", f"rate({_LATENESS}[{WINDOW}])", ("le", *NODE_LABELS))


def _rate(metric: str, by: tuple[str, ...] = NODE_LABELS) -> str:
    return aggregate("sum", f"rate({agent_series(metric)}[{WINDOW}])", by)


def _increase(metric: str, by: tuple[str, ...] = NODE_LABELS) -> str:
    return aggregate("sum", f"increase({agent_series(metric)}[{WINDOW}])", by)


_MISSED = _rate("casstat_ticks_missed_total")

ALERTS = (
    *threshold_alerts(
        "CasstatAgentDown",
        "agent_up",
        f"up{{{MATCH}}}",
        "The agent at {{ $labels.instance }} is not responding",
        "Prometheus cannot scrape {{ $labels.instance }}, so its node is not monitored.",
        by=("job", "instance"),
    ),
    *threshold_alerts(
        "CasstatNodeUnread",
        "node_read",
        ANSWERS,
        "The agent cannot read metrics from {{ $labels.node }}",
        f"The agent is running but gets no response from {WHERE}: its Cassandra metrics are missing.",
    ),
    *threshold_alerts(
        "CasstatSourceFailing",
        "source_up",
        aggregate("max", "casstat_source_up{" + MATCH + ',source!~"cassandra|nodetool .*"}', (*NODE_LABELS, "source")),
        "The agent for {{ $labels.node }} cannot read {{ $labels.source }}",
        f"The agent for {WHERE} cannot read source {{{{ $labels.source }}}}.",
        by=(*NODE_LABELS, "source"),
    ),
    *threshold_alerts(
        "CasstatTicksLate",
        "tick_late_p99",
        f"histogram_quantile(0.99, {_LATENESS_BUCKETS})",
        "The agent for {{ $labels.node }} is ticking late",
        f"1% of the agent's ticks for {WHERE} are late by {{{{ $value | humanizeDuration }}}} or more.",
    ),
    *threshold_alerts(
        "CasstatTicksMissed",
        "ticks_missed_share",
        f"{_MISSED} / ({_MISSED} + {_rate('casstat_ticks_total')})",
        "The agent for {{ $labels.node }} is missing ticks",
        f"The agent for {WHERE} is missing {{{{ $value | humanizePercentage }}}} of its ticks.",
    ),
    *threshold_alerts(
        "CasstatSinkDown",
        "sink_up",
        aggregate("max", agent_series("casstat_sink_up"), _SINK),
        "{{ $labels.sink }} is not accepting data from {{ $labels.node }}",
        f"{{{{ $labels.sink }}}} is not accepting data from {WHERE}. "
        "The agent keeps the data in its journal and retries.",
        by=_SINK,
    ),
    *threshold_alerts(
        "CasstatSinkLagging",
        "sink_lag",
        aggregate("max", agent_series("casstat_sink_lag_seconds"), _SINK),
        "Shipping from {{ $labels.node }} to {{ $labels.sink }} is lagging",
        f"Shipping from {WHERE} to {{{{ $labels.sink }}}} is {{{{ $value | humanizeDuration }}}} behind.",
        by=_SINK,
    ),
    *threshold_alerts(
        "CasstatSinkLosing",
        "sink_lost",
        _increase("casstat_sink_lost_ticks_total", _SINK),
        "Data from {{ $labels.node }} is being lost before it reaches {{ $labels.sink }}",
        f"Up to {{{{ $value | humanize }}}} ticks of {WHERE} were lost before they reached "
        "{{ $labels.sink }}, usually because the journal reached its size limit.",
        by=_SINK,
    ),
    *threshold_alerts(
        "CasstatSinkRefusing",
        "sink_refused",
        _rate("casstat_sink_refused_points_total", _SINK),
        "{{ $labels.sink }} is rejecting points from {{ $labels.node }}",
        f"{{{{ $labels.sink }}}} is rejecting {RATE} points per second from {WHERE};"
        " the reason is in the dead-letter files.",
        by=_SINK,
    ),
    *threshold_alerts(
        "CasstatJournalLosing",
        "journal_lost",
        _increase("casstat_journal_lost_ticks_total"),
        "The recording of {{ $labels.node }} has gaps",
        f"The agent for {WHERE} failed to write {{{{ $value | humanize }}}} ticks to its journal in five minutes.",
    ),
    *threshold_alerts(
        "CasstatSeriesRefused",
        "series_refused",
        aggregate("sum", agent_series("casstat_series_refused")),
        "The agent for {{ $labels.node }} is omitting metrics",
        f"The agent for {WHERE} is omitting {{{{ $value | humanize }}}} series because of its series_limit.",
    ),
)
