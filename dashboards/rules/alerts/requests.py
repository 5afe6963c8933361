"""What clients meet: slow answers, and none."""

from dashboards.expression import where
from dashboards.promql import selector
from dashboards.rules.alert import CRITICAL, WARNING, WHERE, Alert, number, of_signal
from dashboards.rules.burn_rate import BY, WINDOWS, record
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
        bound = f"({number(factor)} * {number(1 - objective.share)})"
        series = [selector(record(window), where(operation=objective.operation)) for window in WINDOWS[severity]]
        expr = " and ".join(f"{each} > {bound}" for each in series)
        summary = f"{objective.operation}s of {{{{ $labels.cluster }}}} / {{{{ $labels.dc }}}} are slow"
        text = (
            f"{{{{ $value | humanizePercentage }}}} of the {objective.operation.lower()}s that {{{{ $labels.dc }}}} of "
            f"{{{{ $labels.cluster }}}} coordinated in {WINDOWS[severity][0]} took longer than "
            f"{number(1000 * objective.bound_s)} ms; {100 * (1 - objective.share):g} % may."
        )
        found.append(Alert(name, severity, threshold, factor, expr, summary, text, (*BY, "operation")))
    return tuple(found)


ALERTS = (
    *_burn("CassandraReadsSlow", "read_burn"),
    *_burn("CassandraWritesSlow", "write_burn"),
    *of_signal(
        "CassandraTimeouts",
        "timeouts",
        f"{WHERE} gives up {{{{ $value | humanize }}}} requests a second: replicas do not answer in time.",
    ),
    *of_signal(
        "CassandraUnavailables",
        "unavailables",
        f"{WHERE} refuses {{{{ $value | humanize }}}} requests a second: too few replicas are up.",
    ),
    *of_signal(
        "CassandraFailures",
        "failures",
        f"{{{{ $value | humanize }}}} requests a second that {WHERE} coordinates fail on a replica.",
    ),
    *of_signal(
        "CassandraRequestsDiscarded",
        "native_discarded",
        f"{WHERE} discards {{{{ $value | humanize }}}} requests a second, since it has too many.",
    ),
)
