"""Signals for Cassandra's JVM: memory, garbage collection, CPU time, threads, file descriptors."""

from collector.node.metrics.jvm import LAST_PAUSE_COLLECTORS, PAUSING_COLLECTORS
from dashboards.expression import Constant, Difference, Gauge, Rate, Ratio, where
from dashboards.signals.signal import Signal, Unit

PAUSING = where(collector=PAUSING_COLLECTORS)

SIGNALS = (
    Signal(
        "gc_share",
        "Garbage collection time",
        Rate("cassandra_jvm_gc_seconds_total"),
        Unit.RATIO,
        "Fraction of time spent in garbage collection, concurrent collectors included, which take CPU time but do not "
        "stop the node. For several nodes, the value is the mean over the nodes.",
        ("collector",),
    ),
    Signal(
        "outside_gc",
        "Time outside GC pauses",
        Difference(Constant(1), Rate("cassandra_jvm_gc_seconds_total", PAUSING)),
        Unit.RATIO,
        "Fraction of the time in which no GC pause stopped the node.",
        bounded=True,
        low_is_worse=True,
    ),
    Signal(
        "gc_collections",
        "Garbage collections",
        Rate("cassandra_jvm_gc_total"),
        Unit.PER_S,
        "Garbage collections per second, by collector.",
        ("collector",),
    ),
    Signal(
        "gc_mean",
        "GC duration, mean",
        Ratio(Rate("cassandra_jvm_gc_seconds_total"), Rate("cassandra_jvm_gc_total")),
        Unit.SECONDS,
        "Mean duration of a collection.",
        ("collector",),
        "Absent while no collection takes place.",
    ),
    Signal(
        "gc_last",
        "Last GC pause",
        Gauge("cassandra_jvm_gc_last_seconds", where(collector=LAST_PAUSE_COLLECTORS)),
        Unit.SECONDS,
        "Duration of the last GC pause, read once a minute.",
        ("collector",),
        "Absent until the first collection.",
    ),
    Signal(
        "gc_pause_share",
        "GC pause time",
        Rate("cassandra_jvm_gc_seconds_total", PAUSING),
        Unit.RATIO,
        "Fraction of the time in which a GC pause stops the node. All requests wait during a pause.",
        ("collector",),
    ),
    Signal(
        "gc_pause_mean",
        "GC pause duration, mean",
        Ratio(Rate("cassandra_jvm_gc_seconds_total", PAUSING), Rate("cassandra_jvm_gc_total", PAUSING)),
        Unit.SECONDS,
        "Mean duration of a GC pause. Other nodes consider a node down during a long pause.",
        ("collector",),
        "Absent while no collection takes place.",
    ),
    Signal(
        "heap_used",
        "Heap usage",
        Gauge("cassandra_jvm_heap_used_bytes"),
        Unit.BYTES,
        "Heap in use, garbage included. Watch the low points after collections.",
    ),
    Signal(
        "heap_share",
        "Heap utilisation",
        Ratio(Gauge("cassandra_jvm_heap_used_bytes"), Gauge("cassandra_jvm_heap_max_bytes")),
        Unit.RATIO,
        "Fraction of the maximum heap in use, garbage included. A heap that stays full after collections is too small.",
        bounded=True,
    ),
    Signal(
        "nonheap_used",
        "Non-heap memory",
        Gauge("cassandra_jvm_nonheap_used_bytes"),
        Unit.BYTES,
        "Class metadata, compiled code and other JVM memory outside the heap.",
    ),
    Signal(
        "jvm_cpu",
        "Cassandra CPU usage",
        Rate("cassandra_jvm_cpu_seconds_total"),
        Unit.COUNT,
        "CPU time that Cassandra's process uses per second; 1 is one core. For several nodes, the value is the mean "
        "over the nodes.",
    ),
    Signal("jvm_threads", "Threads", Gauge("cassandra_jvm_threads"), Unit.COUNT, "Live threads."),
    Signal(
        "files_share",
        "File descriptor utilisation",
        Ratio(Gauge("cassandra_jvm_open_files"), Gauge("cassandra_jvm_max_files")),
        Unit.RATIO,
        "Fraction of the permitted file descriptors that are open.",
        bounded=True,
    ),
)
