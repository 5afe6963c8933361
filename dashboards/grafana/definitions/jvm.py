"""The JVM dashboard: garbage collection, memory, threads and files."""

from dashboards.grafana.panel_model import Dashboard, Row, Split, Stat, WorstTable, graphs, lines

NODE = Split.NODE
COLLECTOR = ("collector",)

DASHBOARD = Dashboard(
    "jvm",
    "JVM and GC",
    "Garbage collection and memory of Cassandra's JVM. A node does not answer requests during a GC pause.",
    (
        Row(
            "Garbage collection",
            (
                *graphs("outside_gc", split=NODE, width=12),
                WorstTable(lines("gc_pause_share"), "GC pause time", split=NODE, width=12),
                *graphs("gc_pause_share", "gc_pause_mean", "gc_last", labels=COLLECTOR),
                *graphs("gc_share", "gc_collections", "gc_mean", labels=COLLECTOR),
                *graphs("read_p999", text="GC pauses affect the highest percentiles first.", width=12),
                *graphs("jvm_cpu", width=12),
            ),
        ),
        Row(
            "Memory",
            (
                *graphs("heap_used", "heap_share", "nonheap_used", split=NODE),
                *graphs("swap_used", "major_faults"),
                *graphs("buffer_misses", labels=("pool",)),
            ),
        ),
        Row(
            "Threads and files",
            (
                *graphs("jvm_threads", "files_share"),
                Stat(lines("heap_share"), "Cluster heap utilisation", split=Split.CLUSTER),
            ),
        ),
    ),
)
