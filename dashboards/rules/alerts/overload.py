"""Where work waits, is given up, or is kept for later."""

from dashboards.expression import Rate
from dashboards.rules.alert import WHERE, alerts, asked, of_signal
from dashboards.signals.all_signals import SIGNALS

_HINTS = asked(SIGNALS["hints"].expression)
_DELIVERED = asked(Rate("cassandra_hints_succeeded_total"))
_WAIT = "{{ $value | humanize }}"

ALERTS = (
    *of_signal(
        "CassandraMessagesDropped",
        "dropped",
        f"{WHERE} gives up {_WAIT} messages of kind {{{{ $labels.message }}}} a second: they waited for too long.",
        ("message",),
    ),
    *of_signal(
        "CassandraRequestsPending",
        "requests_pending",
        f"{_WAIT} requests of clients wait for a thread on {WHERE}.",
    ),
    *of_signal("CassandraReadsPending", "reads_pending", f"{_WAIT} reads of its own data wait on {WHERE}."),
    *of_signal("CassandraMutationsPending", "mutations_pending", f"{_WAIT} writes of its own data wait on {WHERE}."),
    *of_signal(
        "CassandraPoolBlocked",
        "pools_blocked",
        f"{_WAIT} tasks find no room in the queue of {{{{ $labels.pool }}}} on {WHERE}.",
        ("pool",),
    ),
    *of_signal(
        "CassandraConnectionsPaused",
        "connection_pauses",
        f"{WHERE} stops reading from client connections {_WAIT} times a second: too many requests are in flight.",
    ),
    *of_signal(
        "CassandraHintsWritten",
        "hints",
        f"{WHERE} keeps {_WAIT} writes a second for replicas that do not take them.",
    ),
    *alerts(
        "CassandraHintsGrowing",
        "hints_growing",
        _HINTS,
        "Hints pile up on {{ $labels.node }}",
        f"{WHERE} writes {_WAIT} hints a second, and delivers fewer.",
        # There is no count of those delivered before the first one is.
        also=f"unless {_DELIVERED} >= {_HINTS}",
    ),
    *of_signal(
        "CassandraHintsNotDelivered",
        "hints_failed",
        f"The delivery of {_WAIT} hints a second by {WHERE} fails.",
    ),
    *of_signal(
        "CassandraExceptions",
        "exceptions",
        f"{WHERE} has {_WAIT} exceptions a second that nobody caught.",
    ),
)
