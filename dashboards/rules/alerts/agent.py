"""casstat itself: what it cannot see, nobody is told of."""

from dashboards.promql import NODE_LABELS
from dashboards.rules.alert import MATCH, WHERE, WINDOW, agent_series, aggregate, threshold_alerts
from dashboards.rules.alerts.cluster import ANSWERS

_SINK = (*NODE_LABELS, "sink")
_TO = f"from {WHERE} to {{{{ $labels.sink }}}}"
_LATENESS = agent_series("casstat_tick_lateness_seconds_bucket")
_LATENESS_BUCKETS = aggregate("sum", f"rate({_LATENESS}[{WINDOW}])", ("le", *NODE_LABELS))


def _rate(metric: str, by: tuple[str, ...] = NODE_LABELS) -> str:
    return aggregate("sum", f"rate({agent_series(metric)}[{WINDOW}])", by)


def _gone(metric: str, by: tuple[str, ...] = NODE_LABELS) -> str:
    return aggregate("sum", f"increase({agent_series(metric)}[{WINDOW}])", by)


_MISSED = _rate("casstat_ticks_missed_total")

ALERTS = (
    *threshold_alerts(
        "CasstatAgentDown",
        "agent_up",
        f"up{{{MATCH}}}",
        "The agent at {{ $labels.instance }} does not answer",
        "Prometheus cannot scrape {{ $labels.instance }}: nobody watches the node there.",
        by=("job", "instance"),
    ),
    *threshold_alerts(
        "CasstatNodeUnread",
        "node_read",
        ANSWERS,
        "The agent cannot read {{ $labels.node }}",
        f"The agent runs, and gets no answer from {WHERE}: all figures of the node are missing.",
    ),
    *threshold_alerts(
        "CasstatSourceFailing",
        "source_up",
        aggregate("max", "casstat_source_up{" + MATCH + ',source!~"cassandra|nodetool .*"}', (*NODE_LABELS, "source")),
        "The agent cannot read {{ $labels.source }} of {{ $labels.node }}",
        f"The agent beside {WHERE} cannot read {{{{ $labels.source }}}}.",
        by=(*NODE_LABELS, "source"),
    ),
    *threshold_alerts(
        "CasstatTicksLate",
        "tick_late_p99",
        f"histogram_quantile(0.99, {_LATENESS_BUCKETS})",
        "The agent of {{ $labels.node }} is late",
        f"One in a hundred ticks of the agent beside {WHERE} is {{{{ $value | humanizeDuration }}}} late or more.",
    ),
    *threshold_alerts(
        "CasstatTicksMissed",
        "ticks_missed_share",
        f"{_MISSED} / ({_MISSED} + {_rate('casstat_ticks_total')})",
        "The agent of {{ $labels.node }} misses ticks",
        f"The agent beside {WHERE} misses {{{{ $value | humanizePercentage }}}} of its ticks.",
    ),
    *threshold_alerts(
        "CasstatSinkDown",
        "sink_up",
        aggregate("max", agent_series("casstat_sink_up"), _SINK),
        "{{ $labels.sink }} takes nothing from {{ $labels.node }}",
        f"What is shipped {_TO} is not taken; it is kept, and will be sent when it is.",
        by=_SINK,
    ),
    *threshold_alerts(
        "CasstatSinkLagging",
        "sink_lag",
        aggregate("max", agent_series("casstat_sink_lag_seconds"), _SINK),
        "{{ $labels.sink }} is behind {{ $labels.node }}",
        f"What is shipped {_TO} is {{{{ $value | humanizeDuration }}}} behind.",
        by=_SINK,
    ),
    *threshold_alerts(
        "CasstatSinkLosing",
        "sink_lost",
        _gone("casstat_sink_lost_ticks_total", _SINK),
        "{{ $labels.sink }} will never have all of {{ $labels.node }}",
        f"{{{{ $value | humanize }}}} ticks {_TO} were removed before they could be sent.",
        by=_SINK,
    ),
    *threshold_alerts(
        "CasstatSinkRefusing",
        "sink_refused",
        _rate("casstat_sink_refused_points_total", _SINK),
        "{{ $labels.sink }} refuses points of {{ $labels.node }}",
        f"{{{{ $value | humanize }}}} points a second {_TO} are refused, and will never be there.",
        by=_SINK,
    ),
    *threshold_alerts(
        "CasstatJournalLosing",
        "journal_lost",
        _gone("casstat_journal_lost_ticks_total"),
        "The recording of {{ $labels.node }} has holes",
        f"{{{{ $value | humanize }}}} ticks of {WHERE} could not be written to the journal in five minutes.",
    ),
    *threshold_alerts(
        "CasstatSeriesRefused",
        "series_refused",
        aggregate("sum", agent_series("casstat_series_refused")),
        "The agent of {{ $labels.node }} leaves out metrics",
        f"{{{{ $value | humanize }}}} series of {WHERE} are left out for want of room.",
    ),
)
