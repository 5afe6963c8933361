"""Cassandra's JVM: its heap, its garbage collection, its processor time."""

from dashboards.expression import Constant, Difference, Gauge, Rate, Ratio, where
from dashboards.signals.signal import Signal, Unit

# Those for which the program stands still: the time of the others passes beside it.
PAUSING = where(
    collector=(
        *("G1 Young Generation", "G1 Old Generation", "ParNew", "ZGC Pauses", "ZGC Major Pauses", "ZGC Minor Pauses"),
        *("Shenandoah Pauses", "PS Scavenge", "PS MarkSweep", "Copy", "MarkSweepCompact"),
    )
)

SIGNALS = (
    Signal(
        "gc_share",
        "Garbage collection time",
        Rate("cassandra_jvm_gc_seconds_total"),
        Unit.RATIO,
        "Share of the time that collections take, those that run beside the program included: above a tenth the node "
        "does little else. Of several nodes the mean.",
        ("collector",),
    ),
    Signal(
        "outside_gc",
        "Time outside GC pauses",
        Difference(Constant(1), Rate("cassandra_jvm_gc_seconds_total", PAUSING)),
        Unit.RATIO,
        "Share of a node's time in which it did not stand still for a collection: what is left for the work itself.",
        bounded=True,
        low_is_worse=True,
    ),
    Signal(
        "gc_collections",
        "Collections",
        Rate("cassandra_jvm_gc_total"),
        Unit.PER_S,
        "Collections, by collector.",
        ("collector",),
    ),
    Signal(
        "gc_mean",
        "Collection duration, mean",
        Ratio(Rate("cassandra_jvm_gc_seconds_total"), Rate("cassandra_jvm_gc_total")),
        Unit.SECONDS,
        "How long one collection takes.",
        ("collector",),
        "Absent while there is no collection.",
    ),
    Signal(
        "gc_last",
        "Last collection duration",
        Gauge("cassandra_jvm_gc_last_seconds"),
        Unit.SECONDS,
        "How long the last collection took; looked at once a minute.",
        ("collector",),
        "Absent until there was a collection.",
    ),
    Signal(
        "gc_pause_share",
        "GC pause time",
        Rate("cassandra_jvm_gc_seconds_total", PAUSING),
        Unit.RATIO,
        "Share of the time in which the program stands still for a collection: every request of that time waits.",
        ("collector",),
    ),
    Signal(
        "gc_pause_mean",
        "GC pause duration, mean",
        Ratio(Rate("cassandra_jvm_gc_seconds_total", PAUSING), Rate("cassandra_jvm_gc_total", PAUSING)),
        Unit.SECONDS,
        "How long the program stands still for one collection: others call a node down that stands still for long.",
        ("collector",),
        "Absent while there is no collection.",
    ),
    Signal(
        "heap_used",
        "Heap usage",
        Gauge("cassandra_jvm_heap_used_bytes"),
        Unit.BYTES,
        "Heap in use, garbage included: what counts is how low a collection brings it.",
    ),
    Signal(
        "heap_share",
        "Heap utilisation",
        Ratio(Gauge("cassandra_jvm_heap_used_bytes"), Gauge("cassandra_jvm_heap_max_bytes")),
        Unit.RATIO,
        "Heap in use, garbage included, of what it may be: one that no collection brings down is full.",
        bounded=True,
    ),
    Signal(
        "nonheap_used",
        "Non-heap memory",
        Gauge("cassandra_jvm_nonheap_used_bytes"),
        Unit.BYTES,
        "Classes, compiled code and the like.",
    ),
    Signal(
        "jvm_cpu",
        "Cassandra CPU usage",
        Rate("cassandra_jvm_cpu_seconds_total"),
        Unit.COUNT,
        "Processors that are kept busy by Cassandra's process: 1 is one of them, all of the time. Of several nodes the "
        "mean.",
    ),
    Signal(
        "jvm_threads",
        "Threads",
        Gauge("cassandra_jvm_threads"),
        Unit.COUNT,
        "Live threads.",
    ),
    Signal(
        "files_share",
        "File descriptor utilisation",
        Ratio(Gauge("cassandra_jvm_open_files"), Gauge("cassandra_jvm_max_files")),
        Unit.RATIO,
        "Open file descriptors of those that it may have.",
        bounded=True,
    ),
)
