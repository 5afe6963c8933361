"""Alerts on client requests: latency objectives and errors."""

from dashboards.expression import where
from dashboards.promql import selector
from dashboards.rules.alert import (
    BY,
    CRITICAL,
    RATE,
    WARNING,
    WHERE,
    WINDOWS,
    Alert,
    format_number,
    ratio_name,
    signal_alerts,
)
from dashboards.thresholds import OBJECTIVES, THRESHOLDS


def _burn(name: str, threshold: str) -> tuple[Alert, ...]:
    """Return the alerts on an objective's burn rate in a long and a short window.

    The long window shows that the excess is significant, and the short one that it is ongoing.
    """
    objective, row = OBJECTIVES[threshold], THRESHOLDS[threshold]
    alerts = []
    for severity, factor in ((WARNING, row.warning), (CRITICAL, row.critical)):
        if factor is None:
            continue
        bound = f"({format_number(factor)} * {format_number(1 - objective.target)})"
        series = [selector(ratio_name(window), where(operation=objective.operation)) for window in WINDOWS[severity]]
        expr = " and ".join(f"{selected} > {bound}" for selected in series)
        summary = f"{objective.operation}s in {{{{ $labels.cluster }}}} / {{{{ $labels.dc }}}} are slow"
        text = (
            f"{{{{ $value | humanizePercentage }}}} of the {objective.operation.lower()}s that {{{{ $labels.dc }}}} of "
            f"{{{{ $labels.cluster }}}} coordinated over the last {WINDOWS[severity][0]} took longer than "
            f"{format_number(1000 * objective.bound_s)} ms; the objective permits {100 * (1 - objective.target):g}%."
        )
        alerts.append(Alert(name, severity, threshold, factor, expr, summary, text, (*BY, "operation")))
    return tuple(alerts)


ALERTS = (
    *_burn("CassandraReadsSlow", "read_burn"),
    *_burn("CassandraWritesSlow", "write_burn"),
    *signal_alerts(
        "CassandraTimeouts",
        "timeouts",
        f"{RATE} requests per second coordinated by {WHERE} are timing out.",
    ),
    *signal_alerts(
        "CassandraUnavailables",
        "unavailables",
        f"{WHERE} is rejecting {RATE} requests per second because too few replicas are up.",
    ),
    *signal_alerts(
        "CassandraFailures",
        "failures",
        f"{RATE} requests per second coordinated by {WHERE} are failing on a replica.",
    ),
    *signal_alerts(
        "CassandraRequestsDiscarded",
        "native_discarded",
        f"{WHERE} is overloaded and is discarding {RATE} requests per second.",
    ),
)
