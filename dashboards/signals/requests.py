"""What clients ask of the cluster, and how long it takes: by the nodes that coordinate."""

from dashboards.expression import Gauge, LabelFilter, Quantile, Rate, Ratio, where
from dashboards.signals.signal import Signal, Unit

IDLE = "Absent while nothing is asked."
_DURATION = "cassandra_client_request_duration_seconds"
_LATENCY = "From the arrival of a request at its coordinator to the answer, all replicas that were waited for included."


def _latency(name: str, title: str, share: float, operation: str) -> Signal:
    expression = Quantile(share, _DURATION, where(operation=operation))
    return Signal(
        f"{name}_p{f'{100 * share:g}'.replace('.', '')}", title, expression, Unit.SECONDS, _LATENCY, absent=IDLE
    )


def _mean(name: str, title: str, operation: str) -> Signal:
    which = where(operation=operation)
    expression = Ratio(
        Rate("cassandra_client_request_seconds_total", which), Rate("cassandra_client_requests_total", which)
    )
    return Signal(name, title, expression, Unit.SECONDS, f"{_LATENCY} The mean hides the slow ones.", absent=IDLE)


def _rate(name: str, title: str, metric: str, text: str, which: LabelFilter = ()) -> Signal:
    return Signal(name, title, Rate(metric, which), Unit.PER_S, text, labels=() if which else ("operation",))


SIGNALS = (
    _rate(
        "requests",
        "Requests",
        "cassandra_client_requests_total",
        "Requests that the nodes coordinate for clients, failed ones included.",
    ),
    _rate(
        "reads",
        "Reads",
        "cassandra_client_requests_total",
        "Reads that the nodes coordinate for clients.",
        where(operation="Read"),
    ),
    _rate(
        "writes",
        "Writes",
        "cassandra_client_requests_total",
        "Writes that the nodes coordinate for clients.",
        where(operation="Write"),
    ),
    Signal(
        "request_p99",
        "Request latency, p99",
        Quantile(0.99, _DURATION),
        Unit.SECONDS,
        _LATENCY,
        ("operation",),
        IDLE,
    ),
    _latency("read", "Read latency, p50", 0.5, "Read"),
    _latency("read", "Read latency, p95", 0.95, "Read"),
    _latency("read", "Read latency, p99", 0.99, "Read"),
    _latency("read", "Read latency, p99.9", 0.999, "Read"),
    _mean("read_mean", "Read latency, mean", "Read"),
    _latency("write", "Write latency, p50", 0.5, "Write"),
    _latency("write", "Write latency, p95", 0.95, "Write"),
    _latency("write", "Write latency, p99", 0.99, "Write"),
    _latency("write", "Write latency, p99.9", 0.999, "Write"),
    _mean("write_mean", "Write latency, mean", "Write"),
    _rate(
        "timeouts",
        "Timeouts",
        "cassandra_client_request_timeouts_total",
        "Requests for which too few replicas answered in time: overload, long pauses, or a replica that is gone.",
    ),
    _rate(
        "unavailables",
        "Unavailables",
        "cassandra_client_request_unavailables_total",
        "Requests refused at once, since too few replicas were known to be up.",
    ),
    _rate(
        "failures",
        "Failures",
        "cassandra_client_request_failures_total",
        "Requests that failed on a replica, for instance at too many tombstones.",
    ),
    _rate(
        "aborts",
        "Aborts",
        "cassandra_client_request_aborts_total",
        "Requests that a guardrail or a limit ended (Cassandra 4.1 and later).",
    ),
    Signal(
        "error_share",
        "Timeout ratio",
        Ratio(Rate("cassandra_client_request_timeouts_total"), Rate("cassandra_client_requests_total")),
        Unit.RATIO,
        "Requests that timed out, of all: what a latency objective is spent by.",
        absent=IDLE,
        bounded=True,
    ),
    Signal(
        "local_share",
        "Local request ratio",
        Ratio(
            Rate("cassandra_client_requests_local_total"),
            Rate("cassandra_client_requests_total", where(operation=("Read", "Write"))),
        ),
        Unit.RATIO,
        "Requests whose coordinator is a replica itself: near RF / nodes when drivers do not route by token.",
        absent="Absent while nothing is asked, and before Cassandra 4.1.",
        bounded=True,
        low_is_worse=True,
    ),
    Signal(
        "connections",
        "Client connections",
        Gauge("cassandra_native_connections"),
        Unit.COUNT,
        "Connections of clients: one that drops to none on one node alone is a node that clients cannot reach.",
    ),
)
