"""What clients meet: slow answers, and none."""

from dashboards.expression import where
from dashboards.promql import selector
from dashboards.rules.alert import CRITICAL, WARNING, WHERE, Alert, format_number, signal_alerts
from dashboards.rules.burn_rate import BY, WINDOWS, ratio_name
from dashboards.thresholds import OBJECTIVES, THRESHOLDS


def _burn(name: str, threshold: str) -> tuple[Alert, ...]:
    """Return the alert on an objective whose budget is spent too fast, over a long and a short window.

    The long one says that it matters, the short one that it is still so.
    """
    objective, row = OBJECTIVES[threshold], THRESHOLDS[threshold]
    found = []
    for severity, factor in ((WARNING, row.warning), (CRITICAL, row.critical)):
        if factor is None:
            continue
        bound = f"({format_number(factor)} * {format_number(1 - objective.target)})"
        series = [selector(ratio_name(window), where(operation=objective.operation)) for window in WINDOWS[severity]]
        expr = " and ".join(f"{each} > {bound}" for each in series)
        summary = f"{objective.operation}s of {{{{ $labels.cluster }}}} / {{{{ $labels.dc }}}} are slow"
        text = (
            f"{{{{ $value | humanizePercentage }}}} of the {objective.operation.lower()}s that {{{{ $labels.dc }}}} of "
            f"{{{{ $labels.cluster }}}} coordinated in {WINDOWS[severity][0]} took longer than "
            f"{format_number(1000 * objective.bound_s)} ms; {100 * (1 - objective.target):g} % may."
        )
        found.append(Alert(name, severity, threshold, factor, expr, summary, text, (*BY, "operation")))
    return tuple(found)


ALERTS = (
    *_burn("CassandraReadsSlow", "read_burn"),
    *_burn("CassandraWritesSlow", "write_burn"),
    *signal_alerts(
        "CassandraTimeouts",
        "timeouts",
        f"{WHERE} gives up {{{{ $value | humanize }}}} requests a second: replicas do not answer in time.",
    ),
    *signal_alerts(
        "CassandraUnavailables",
        "unavailables",
        f"{WHERE} refuses {{{{ $value | humanize }}}} requests a second: too few replicas are up.",
    ),
    *signal_alerts(
        "CassandraFailures",
        "failures",
        f"{{{{ $value | humanize }}}} requests a second that {WHERE} coordinates fail on a replica.",
    ),
    *signal_alerts(
        "CassandraRequestsDiscarded",
        "native_discarded",
        f"{WHERE} discards {{{{ $value | humanize }}}} requests a second, since it has too many.",
    ),
)
