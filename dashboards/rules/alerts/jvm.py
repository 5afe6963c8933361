"""Cassandra's JVM."""

from dashboards.rules.alert import WHERE, of_signal

_SHARE = "{{ $value | humanizePercentage }}"

ALERTS = (
    *of_signal("CassandraHeapFull", "heap_share", f"{_SHARE} of the heap are in use on {WHERE}, and stay so."),
    *of_signal("CassandraGcShare", "gc_pause_share", f"Garbage collection stops {WHERE} for {_SHARE} of the time."),
    *of_signal(
        "CassandraGcPauses",
        "gc_pause_mean",
        f"Each garbage collection stops {WHERE} for {{{{ $value | humanizeDuration }}}}.",
    ),
    *of_signal("CassandraFileDescriptors", "files_share", f"{_SHARE} of the file descriptors are in use on {WHERE}."),
)
