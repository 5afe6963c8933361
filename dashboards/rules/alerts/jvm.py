"""Alerts on Cassandra's JVM: heap, garbage collection, file descriptors."""

from dashboards.rules.alert import WHERE, signal_alerts

_PERCENT = "{{ $value | humanizePercentage }}"

ALERTS = (
    *signal_alerts(
        "CassandraHeapFull", "heap_share", f"{_PERCENT} of the heap is in use on {WHERE} and is not being freed."
    ),
    *signal_alerts(
        "CassandraGcShare", "gc_pause_share", f"Garbage collection is pausing {WHERE} for {_PERCENT} of the time."
    ),
    *signal_alerts(
        "CassandraGcPauses",
        "gc_pause_mean",
        f"Garbage collection pauses on {WHERE} last {{{{ $value | humanizeDuration }}}} on average.",
    ),
    *signal_alerts(
        "CassandraFileDescriptors", "files_share", f"{_PERCENT} of the file descriptors are in use on {WHERE}."
    ),
)
