"""The machines under the nodes."""

from dashboards.promql import NODE_LABELS, selector
from dashboards.rules.alert import MATCH, WHERE, agent_series, aggregate, rule_query, signal_alerts, threshold_alerts
from dashboards.signals.all_signals import SIGNALS

_SHARE = "{{ $value | humanizePercentage }}"
_MOUNT = ("mountpoint",)
_FREE = selector("node_filesystem_avail_bytes", (), MATCH)
_FREE_SHARE = rule_query(SIGNALS["disk_free_share"].expression, (*NODE_LABELS, *_MOUNT))

ALERTS = (
    *signal_alerts(
        "CassandraDiskNearlyFull",
        "disk_free_share",
        f"Only {_SHARE} of {{{{ $labels.mountpoint }}}} is free on {WHERE}.",
        _MOUNT,
        summary="A disk of {{ $labels.node }} is nearly full",
    ),
    *threshold_alerts(
        "CassandraDiskFilling",
        "disk_fills",
        # When the line through the last six hours reaches nothing.
        f"{aggregate('sum', _FREE, (*NODE_LABELS, *_MOUNT))} / "
        f"({aggregate('sum', f'deriv({_FREE}[6h])', (*NODE_LABELS, *_MOUNT))} < 0) * -1",
        "The disk of {{ $labels.node }} fills up",
        f"As it goes, {{{{ $labels.mountpoint }}}} of {WHERE} is full in {{{{ $value | humanizeDuration }}}}.",
        by=(*NODE_LABELS, *_MOUNT),
        # A disk that is half empty has time, and so has one that has ceased to fill up.
        also=f"and {_FREE_SHARE} < 0.5 and {aggregate('sum', f'deriv({_FREE}[1h])', (*NODE_LABELS, *_MOUNT))} < 0",
    ),
    *signal_alerts(
        "CassandraDiskBusy",
        "disk_util",
        f"The disk {{{{ $labels.device }}}} of {WHERE} is in use {_SHARE} of the time.",
        ("device",),
    ),
    *signal_alerts("CassandraCpuStolen", "cpu_steal", f"The hypervisor takes {_SHARE} of the CPU time of {WHERE}."),
    *signal_alerts(
        "CassandraMemoryPressure",
        "pressure_memory",
        f"Some task of the machine of {WHERE} waits for memory {_SHARE} of the time.",
    ),
    *threshold_alerts(
        "CassandraClockError",
        "clock_error",
        aggregate("max", agent_series("casstat_clock_error_seconds")),
        "The clock of {{ $labels.node }} may be far off",
        f"The clock of {WHERE} may be {{{{ $value | humanizeDuration }}}} off.",
    ),
    *threshold_alerts(
        "CassandraClockUnsynchronised",
        "clock_synchronised",
        aggregate("max", agent_series("casstat_clock_synchronised")),
        "Nothing keeps the clock of {{ $labels.node }} right",
        f"Nothing keeps the clock of {WHERE} right: of two writes the wrong one may win.",
    ),
)
