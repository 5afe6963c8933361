"""Overload: queues, rejected and dropped work, hints."""

from dashboards.expression import Rate
from dashboards.rules.alert import WHERE, rule_query, signal_alerts, threshold_alerts
from dashboards.signals.all_signals import SIGNALS

_HINTS = rule_query(SIGNALS["hints"].expression)
_DELIVERED = rule_query(Rate("cassandra_hints_succeeded_total"))
_WAIT = "{{ $value | humanize }}"

ALERTS = (
    *signal_alerts(
        "CassandraMessagesDropped",
        "dropped",
        f"{WHERE} gives up {_WAIT} messages of kind {{{{ $labels.message }}}} a second: they waited for too long.",
        ("message",),
    ),
    *signal_alerts(
        "CassandraRequestsPending",
        "requests_pending",
        f"{_WAIT} requests of clients wait for a thread on {WHERE}.",
    ),
    *signal_alerts("CassandraReadsPending", "reads_pending", f"{_WAIT} reads of its own data wait on {WHERE}."),
    *signal_alerts(
        "CassandraMutationsPending", "mutations_pending", f"{_WAIT} writes of its own data wait on {WHERE}."
    ),
    *signal_alerts(
        "CassandraPoolBlocked",
        "pools_blocked",
        f"{_WAIT} tasks find no room in the queue of {{{{ $labels.pool }}}} on {WHERE}.",
        ("pool",),
    ),
    *signal_alerts(
        "CassandraConnectionsPaused",
        "connection_pauses",
        f"{WHERE} stops reading from client connections {_WAIT} times a second: too many requests are in flight.",
    ),
    *signal_alerts(
        "CassandraHintsWritten",
        "hints",
        f"{WHERE} keeps {_WAIT} writes a second for replicas that do not take them.",
    ),
    *threshold_alerts(
        "CassandraHintsGrowing",
        "hints_growing",
        _HINTS,
        "Hints pile up on {{ $labels.node }}",
        f"{WHERE} writes {_WAIT} hints a second, and delivers fewer.",
        # There is no count of those delivered before the first one is.
        also=f"unless {_DELIVERED} >= {_HINTS}",
    ),
    *signal_alerts(
        "CassandraHintsNotDelivered",
        "hints_failed",
        f"The delivery of {_WAIT} hints a second by {WHERE} fails.",
    ),
    *signal_alerts(
        "CassandraExceptions",
        "exceptions",
        f"{WHERE} has {_WAIT} exceptions a second that nobody caught.",
    ),
)
