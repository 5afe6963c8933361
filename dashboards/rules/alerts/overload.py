"""Alerts on overload: queues, paused connections, dropped messages, hints, exceptions."""

from dashboards.expression import Rate
from dashboards.rules.alert import RATE, WHERE, rule_query, signal_alerts, threshold_alerts
from dashboards.signals.all_signals import SIGNALS

_HINTS = rule_query(SIGNALS["hints"].expression)
_DELIVERED = rule_query(Rate("cassandra_hints_succeeded_total"))
_VALUE = "{{ $value | humanize }}"

ALERTS = (
    *signal_alerts(
        "CassandraMessagesDropped",
        "dropped",
        f"{WHERE} is dropping {RATE} {{{{ $labels.message }}}} messages per second because they timed out.",
        ("message",),
    ),
    *signal_alerts(
        "CassandraRequestsPending", "requests_pending", f"{_VALUE} client requests are waiting for a thread on {WHERE}."
    ),
    *signal_alerts(
        "CassandraReadsPending", "reads_pending", f"{_VALUE} local reads are waiting for a thread on {WHERE}."
    ),
    *signal_alerts(
        "CassandraMutationsPending", "mutations_pending", f"{_VALUE} local writes are waiting for a thread on {WHERE}."
    ),
    *signal_alerts(
        "CassandraPoolBlocked",
        "pools_blocked",
        f"The queue of {{{{ $labels.pool }}}} on {WHERE} is full and is blocking tasks (currently {_VALUE}).",
        ("pool",),
    ),
    *signal_alerts(
        "CassandraConnectionsPaused",
        "connection_pauses",
        f"{WHERE} is pausing client connections {RATE} times per second because it is overloaded.",
    ),
    *signal_alerts(
        "CassandraHintsWritten",
        "hints",
        f"{WHERE} is storing {RATE} hints per second for replicas that do not acknowledge writes.",
    ),
    *threshold_alerts(
        "CassandraHintsGrowing",
        "hints_growing",
        _HINTS,
        "Hints are accumulating on {{ $labels.node }}",
        f"{WHERE} is writing {RATE} hints per second and delivering fewer.",
        # `unless` is needed, because the counter of delivered hints is absent before the first delivery.
        also=f"unless {_DELIVERED} >= {_HINTS}",
    ),
    *signal_alerts(
        "CassandraHintsNotDelivered", "hints_failed", f"{RATE} hint deliveries per second from {WHERE} are failing."
    ),
    *signal_alerts("CassandraExceptions", "exceptions", f"{WHERE} is throwing {RATE} uncaught exceptions per second."),
)
