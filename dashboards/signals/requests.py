"""Signals for client requests at their coordinators (rate, errors, latency, local ratio), and for connections."""

from dashboards.expression import Gauge, LabelFilter, Quantile, Rate, Ratio, where
from dashboards.signals.signal import Signal, Unit

IDLE = "Absent while there are no requests."
_DURATION = "cassandra_client_request_duration_seconds"
_LATENCY = "Time from the arrival of a request at its coordinator to the response, including the wait for replicas."


def _latencies(operation: str) -> list[Signal]:
    """Return the percentiles and the mean of an operation, Read or Write; their names begin with `read` or `write`."""
    word, of = operation.lower(), where(operation=operation)
    signals = []
    for share in (0.5, 0.95, 0.99, 0.999):
        name = f"p{100 * share:g}"
        expression = Quantile(share, _DURATION, of)
        title = f"{operation} latency, {name}"
        signals.append(
            Signal(f"{word}_{name.replace('.', '')}", title, expression, Unit.SECONDS, _LATENCY, absent=IDLE)
        )
    mean = Ratio(Rate("cassandra_client_request_seconds_total", of), Rate("cassandra_client_requests_total", of))
    text = f"{_LATENCY} The mean hides slow requests."
    return [*signals, Signal(f"{word}_mean", f"{operation} latency, mean", mean, Unit.SECONDS, text, absent=IDLE)]


def _rate(name: str, title: str, metric: str, description: str, label_filter: LabelFilter = ()) -> Signal:
    return Signal(
        name, title, Rate(metric, label_filter), Unit.PER_S, description, labels=() if label_filter else ("operation",)
    )


SIGNALS = (
    _rate(
        "requests",
        "Requests",
        "cassandra_client_requests_total",
        "Requests that the nodes coordinate for clients, including failed ones.",
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
    *_latencies("Read"),
    *_latencies("Write"),
    _rate(
        "timeouts",
        "Timeouts",
        "cassandra_client_request_timeouts_total",
        "Requests for which too few replicas answered in time, for example because of overload, long pauses or a "
        "replica that is down.",
    ),
    _rate(
        "unavailables",
        "Unavailables",
        "cassandra_client_request_unavailables_total",
        "Requests rejected at once because too few replicas were up.",
    ),
    _rate(
        "failures",
        "Failures",
        "cassandra_client_request_failures_total",
        "Requests that failed on a replica, for example because of too many tombstones.",
    ),
    _rate(
        "aborts",
        "Aborts",
        "cassandra_client_request_aborts_total",
        "Requests that a guardrail or a limit aborted (Cassandra 4.1 and later).",
    ),
    Signal(
        "error_share",
        "Timeout ratio",
        Ratio(Rate("cassandra_client_request_timeouts_total"), Rate("cassandra_client_requests_total")),
        Unit.RATIO,
        "Fraction of requests that timed out.",
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
        "Fraction of requests whose coordinator is a replica. It is close to RF / nodes when drivers do not route by "
        "token.",
        absent="Absent while there are no requests, and before Cassandra 4.1.",
        bounded=True,
        low_is_worse=True,
    ),
    Signal(
        "connections",
        "Client connections",
        Gauge("cassandra_native_connections"),
        Unit.COUNT,
        "Client connections. A drop to 0 on a single node means that clients cannot reach it.",
    ),
)
