"""Cassandra's JVM."""

from dashboards.rules.alert import WHERE, signal_alerts

_SHARE = "{{ $value | humanizePercentage }}"

ALERTS = (
    *signal_alerts("CassandraHeapFull", "heap_share", f"{_SHARE} of the heap are in use on {WHERE}, and stay so."),
    *signal_alerts("CassandraGcShare", "gc_pause_share", f"Garbage collection stops {WHERE} for {_SHARE} of the time."),
    *signal_alerts(
        "CassandraGcPauses",
        "gc_pause_mean",
        f"Each garbage collection stops {WHERE} for {{{{ $value | humanizeDuration }}}}.",
    ),
    *signal_alerts(
        "CassandraFileDescriptors", "files_share", f"{_SHARE} of the file descriptors are in use on {WHERE}."
    ),
)
