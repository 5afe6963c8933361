"""Cassandra's JVM: its heap, its garbage collection, its processor time."""

from dashboards.expression import Level, Number, Rate, Ratio, Rest
from dashboards.signals.signal import Signal, Unit

SIGNALS = (
    Signal(
        "gc_share",
        "Time in garbage collection",
        Rate("cassandra_jvm_gc_seconds_total", across="sum"),
        Unit.RATIO,
        "Share of the time that collections take, those that run beside the program included: above a tenth the node "
        "does little else. Of several nodes their sum.",
        ("collector",),
    ),
    Signal(
        "outside_gc",
        "Time that is not spent in garbage collection",
        Rest(Number(1), Rate("cassandra_jvm_gc_seconds_total")),
        Unit.RATIO,
        "Share of a node's time in which no collection was under way: what is left for the work itself.",
    ),
    Signal(
        "gc_collections",
        "Garbage collections",
        Rate("cassandra_jvm_gc_total"),
        Unit.PER_S,
        "Collections, by collector.",
        ("collector",),
    ),
    Signal(
        "gc_mean",
        "Time of one collection, mean",
        Ratio(Rate("cassandra_jvm_gc_seconds_total"), Rate("cassandra_jvm_gc_total")),
        Unit.SECONDS,
        "How long one collection takes.",
        ("collector",),
        "Absent while there is no collection.",
    ),
    Signal(
        "gc_last",
        "Time of the last collection",
        Level("cassandra_jvm_gc_last_seconds"),
        Unit.SECONDS,
        "How long the last collection took; looked at once a minute.",
        ("collector",),
        "Absent until there was a collection.",
    ),
    Signal(
        "heap_used",
        "Heap",
        Level("cassandra_jvm_heap_used_bytes", across="sum"),
        Unit.BYTES,
        "Heap in use, garbage included: what counts is how low a collection brings it.",
    ),
    Signal(
        "heap_share",
        "Share of the heap in use",
        Ratio(
            Level("cassandra_jvm_heap_used_bytes", across="sum"), Level("cassandra_jvm_heap_max_bytes", across="sum")
        ),
        Unit.RATIO,
        "Heap in use, garbage included, of what it may be: one that no collection brings down is full.",
    ),
    Signal(
        "nonheap_used",
        "Memory beside the heap",
        Level("cassandra_jvm_nonheap_used_bytes", across="sum"),
        Unit.BYTES,
        "Classes, compiled code and the like.",
    ),
    Signal(
        "jvm_cpu",
        "Processors that Cassandra uses",
        Rate("cassandra_jvm_cpu_seconds_total"),
        Unit.COUNT,
        "Processors that are kept busy by Cassandra's process: 1 is one of them, all of the time.",
    ),
    Signal(
        "jvm_threads",
        "Threads",
        Level("cassandra_jvm_threads", across="sum"),
        Unit.COUNT,
        "Live threads.",
    ),
    Signal(
        "files_share",
        "Share of the file descriptors in use",
        Ratio(Level("cassandra_jvm_open_files", across="sum"), Level("cassandra_jvm_max_files", across="sum")),
        Unit.RATIO,
        "Open file descriptors of those that it may have.",
    ),
)
