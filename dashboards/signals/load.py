"""Signals for the client metrics that a load generator exports: see docs/dashboards.md.

The series have no node labels, so only the cluster variable applies to them.
"""

from dashboards.expression import Quantile, Rate, where
from dashboards.signals.signal import Signal, Unit
from exporters.metrics_page.load_series import DURATION, ERRORS, OPERATIONS, READ, WRITE

CLIENTS = ("client", "operation")
"""The labels that the series have in addition to `cluster`."""
CLIENT = "Absent while no load generator exports its metrics to Prometheus."


def _latency(name: str, title: str, share: float, operation: str) -> Signal:
    description = (
        "Time from the intended start of the operation (or its actual start, if the label `latency` is `service`) "
        "until the client receives the response, including network time."
    )
    expression = Quantile(share, DURATION, where(operation=operation))
    return Signal(name, title, expression, Unit.SECONDS, description, ("client",), CLIENT)


SIGNALS = (
    Signal(
        "load_operations",
        "Client operations",
        Rate(f"{OPERATIONS}_total"),
        Unit.PER_S,
        "Operations completed by the clients. The rate stays below the target while the cluster is not keeping up.",
        CLIENTS,
        CLIENT,
    ),
    Signal(
        "load_errors",
        "Client errors",
        Rate(f"{ERRORS}_total"),
        Unit.PER_S,
        "Operations that failed from the client's point of view, including failures that no server counts.",
        CLIENTS,
        CLIENT,
    ),
    _latency("load_read_p50", "Client read latency, p50", 0.5, READ),
    _latency("load_read_p99", "Client read latency, p99", 0.99, READ),
    _latency("load_write_p50", "Client write latency, p50", 0.5, WRITE),
    _latency("load_write_p99", "Client write latency, p99", 0.99, WRITE),
)
