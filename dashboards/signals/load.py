"""The client's side of a load test, as whoever makes the load tells it: see docs/dashboards.md.

These series belong to no node, so nothing but the cluster chooses among them.
"""

from dashboards.expression import Quantile, Rate, where
from dashboards.signals.signal import Signal, Unit

CLIENTS = ("client", "operation")
"""Labels of these series beside the cluster's."""
CLIENT = "Absent while nothing that makes a load tells Prometheus of it."
_DURATION = "casstat_load_operation_duration_seconds"


def _latency(name: str, title: str, share: float, operation: str) -> Signal:
    text = (
        "From when the operation was due until the client had its answer, with the network and the client's own queue."
    )
    expression = Quantile(share, _DURATION, where(operation=operation))
    return Signal(name, title, expression, Unit.SECONDS, text, ("client",), CLIENT)


SIGNALS = (
    Signal(
        "load_operations",
        "Client operations",
        Rate("casstat_load_operations_total"),
        Unit.PER_S,
        "What the clients had done: less than they want to do when the cluster does not keep up.",
        CLIENTS,
        CLIENT,
    ),
    Signal(
        "load_errors",
        "Client errors",
        Rate("casstat_load_errors_total"),
        Unit.PER_S,
        "Operations that failed for the client, whatever the servers count.",
        CLIENTS,
        CLIENT,
    ),
    _latency("load_read_p50", "Client read latency, p50", 0.5, "Read"),
    _latency("load_read_p99", "Client read latency, p99", 0.99, "Read"),
    _latency("load_write_p50", "Client write latency, p50", 0.5, "Write"),
    _latency("load_write_p99", "Client write latency, p99", 0.99, "Write"),
)
