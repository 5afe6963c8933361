"""Alerts on the nodes' machines: disks, CPU, memory, clock."""

from dashboards.promql import NODE_LABELS, selector
from dashboards.rules.alert import MATCH, WHERE, agent_series, aggregate, rule_query, signal_alerts, threshold_alerts
from dashboards.signals.all_signals import SIGNALS

_PERCENT = "{{ $value | humanizePercentage }}"
_MOUNT = ("mountpoint",)
_FREE = selector("node_filesystem_avail_bytes", (), MATCH)
_FREE_SHARE = rule_query(SIGNALS["disk_free_share"].expression, (*NODE_LABELS, *_MOUNT))

ALERTS = (
    *signal_alerts(
        "CassandraDiskNearlyFull",
        "disk_free_share",
        f"Only {_PERCENT} of {{{{ $labels.mountpoint }}}} is free on {WHERE}.",
        _MOUNT,
        summary="A disk of {{ $labels.node }} is nearly full",
    ),
    *threshold_alerts(
        "CassandraDiskFilling",
        "disk_fills",
        # The time until the disk is full if the linear trend of the last six hours continues.
        f"{aggregate('sum', _FREE, (*NODE_LABELS, *_MOUNT))} / "
        f"({aggregate('sum', f'deriv({_FREE}[6h])', (*NODE_LABELS, *_MOUNT))} < 0) * -1",
        "A disk on {{ $labels.node }} is filling up",
        f"At the current rate, {{{{ $labels.mountpoint }}}} of {WHERE} will be full in "
        "{{ $value | humanizeDuration }}.",
        by=(*NODE_LABELS, *_MOUNT),
        # Does not fire for a disk that is at least half empty or has stopped filling up.
        also=f"and {_FREE_SHARE} < 0.5 and {aggregate('sum', f'deriv({_FREE}[1h])', (*NODE_LABELS, *_MOUNT))} < 0",
    ),
    *signal_alerts(
        "CassandraDiskBusy",
        "disk_util",
        f"Disk {{{{ $labels.device }}}} on {WHERE} is busy {_PERCENT} of the time.",
        ("device",),
    ),
    *signal_alerts(
        "CassandraCpuStolen", "cpu_steal", f"The hypervisor is taking {_PERCENT} of the CPU time of {WHERE}."
    ),
    *signal_alerts(
        "CassandraMemoryPressure",
        "pressure_memory",
        f"Tasks on the machine of {WHERE} are waiting for memory {_PERCENT} of the time.",
    ),
    *threshold_alerts(
        "CassandraClockError",
        "clock_error",
        aggregate("max", agent_series("casstat_clock_error_seconds")),
        "The clock of {{ $labels.node }} may be inaccurate",
        f"The clock of {WHERE} may be off by {{{{ $value | humanizeDuration }}}}.",
    ),
    *threshold_alerts(
        "CassandraClockUnsynchronised",
        "clock_synchronised",
        aggregate("max", agent_series("casstat_clock_synchronised")),
        "The clock of {{ $labels.node }} is not synchronised",
        f"No time service is synchronising the clock of {WHERE}: if two writes conflict, the older one may win.",
    ),
)
