"""casstat itself: what it cannot see, nobody is told of."""

from dashboards.promql import NODE_LABELS
from dashboards.rules.alert import MATCH, WHERE, WINDOW, across, alerts, own
from dashboards.rules.alerts.cluster import ANSWERS

_SINK = (*NODE_LABELS, "sink")
_TO = f"from {WHERE} to {{{{ $labels.sink }}}}"
_LATE = f"sum by ({', '.join(('le', *NODE_LABELS))}) (rate({own('casstat_tick_lateness_seconds_bucket')}[{WINDOW}]))"


def _rate(metric: str, by: tuple[str, ...] = NODE_LABELS) -> str:
    return across("sum", f"rate({own(metric)}[{WINDOW}])", by)


def _gone(metric: str, by: tuple[str, ...] = NODE_LABELS) -> str:
    return across("sum", f"increase({own(metric)}[{WINDOW}])", by)


_MISSED = _rate("casstat_ticks_missed_total")

ALERTS = (
    *alerts(
        "CasstatAgentDown",
        "agent_up",
        f"up{{{MATCH}}}",
        "The agent at {{ $labels.instance }} does not answer",
        "Prometheus cannot scrape {{ $labels.instance }}: nobody watches the node there.",
        by=("job", "instance"),
    ),
    *alerts(
        "CasstatNodeUnread",
        "node_read",
        ANSWERS,
        "The agent cannot read {{ $labels.node }}",
        f"The agent runs, and gets no answer from {WHERE}: all figures of the node are missing.",
    ),
    *alerts(
        "CasstatSourceFailing",
        "source_up",
        across("max", "casstat_source_up{" + MATCH + ',source!~"cassandra|nodetool .*"}', (*NODE_LABELS, "source")),
        "The agent cannot read {{ $labels.source }} of {{ $labels.node }}",
        f"The agent beside {WHERE} cannot read {{{{ $labels.source }}}}.",
        by=(*NODE_LABELS, "source"),
    ),
    *alerts(
        "CasstatTicksLate",
        "tick_late_p99",
        f"histogram_quantile(0.99, {_LATE})",
        "The agent of {{ $labels.node }} is late",
        f"One in a hundred ticks of the agent beside {WHERE} is {{{{ $value | humanizeDuration }}}} late or more.",
    ),
    *alerts(
        "CasstatTicksMissed",
        "ticks_missed_share",
        f"{_MISSED} / ({_MISSED} + {_rate('casstat_ticks_total')})",
        "The agent of {{ $labels.node }} misses ticks",
        f"The agent beside {WHERE} misses {{{{ $value | humanizePercentage }}}} of its ticks.",
    ),
    *alerts(
        "CasstatSinkDown",
        "sink_up",
        across("max", own("casstat_sink_up"), _SINK),
        "{{ $labels.sink }} takes nothing from {{ $labels.node }}",
        f"What is shipped {_TO} is not taken; it is kept, and will be sent when it is.",
        by=_SINK,
    ),
    *alerts(
        "CasstatSinkLagging",
        "sink_lag",
        across("max", own("casstat_sink_lag_seconds"), _SINK),
        "{{ $labels.sink }} is behind {{ $labels.node }}",
        f"What is shipped {_TO} is {{{{ $value | humanizeDuration }}}} behind.",
        by=_SINK,
    ),
    *alerts(
        "CasstatSinkLosing",
        "sink_lost",
        _gone("casstat_sink_lost_ticks_total", _SINK),
        "{{ $labels.sink }} will never have all of {{ $labels.node }}",
        f"{{{{ $value | humanize }}}} ticks {_TO} were removed before they could be sent.",
        by=_SINK,
    ),
    *alerts(
        "CasstatSinkRefusing",
        "sink_refused",
        _rate("casstat_sink_refused_points_total", _SINK),
        "{{ $labels.sink }} refuses points of {{ $labels.node }}",
        f"{{{{ $value | humanize }}}} points a second {_TO} are refused, and will never be there.",
        by=_SINK,
    ),
    *alerts(
        "CasstatJournalLosing",
        "journal_lost",
        _gone("casstat_journal_lost_ticks_total"),
        "The recording of {{ $labels.node }} has holes",
        f"{{{{ $value | humanize }}}} ticks of {WHERE} could not be written to the journal in five minutes.",
    ),
    *alerts(
        "CasstatSeriesRefused",
        "series_refused",
        across("sum", own("casstat_series_refused")),
        "The agent of {{ $labels.node }} leaves out metrics",
        f"{{{{ $value | humanize }}}} series of {WHERE} are left out for want of room.",
    ),
)
