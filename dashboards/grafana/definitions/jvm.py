"""The JVM dashboard: garbage collection, memory, threads and files."""

from dashboards.grafana.panel_model import Dashboard, Row, Split, Stat, TimeSeries, WorstTable, lines

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
                TimeSeries(lines("outside_gc"), split=NODE, width=12),
                WorstTable(lines("gc_pause_share"), "GC pause time", split=NODE, width=12),
                TimeSeries(lines("gc_pause_share"), labels=COLLECTOR),
                TimeSeries(lines("gc_pause_mean"), labels=COLLECTOR),
                TimeSeries(lines("gc_last"), labels=COLLECTOR),
                TimeSeries(lines("gc_share"), labels=COLLECTOR),
                TimeSeries(lines("gc_collections"), labels=COLLECTOR),
                TimeSeries(lines("gc_mean"), labels=COLLECTOR),
                TimeSeries(lines("read_p999"), text="GC pauses affect the highest percentiles first.", width=12),
                TimeSeries(lines("jvm_cpu"), width=12),
            ),
        ),
        Row(
            "Memory",
            (
                TimeSeries(lines("heap_used"), split=NODE),
                TimeSeries(lines("heap_share"), split=NODE),
                TimeSeries(lines("nonheap_used"), split=NODE),
                TimeSeries(lines("swap_used")),
                TimeSeries(lines("major_faults")),
                TimeSeries(lines("buffer_misses"), labels=("pool",)),
            ),
        ),
        Row(
            "Threads and files",
            (
                TimeSeries(lines("jvm_threads")),
                TimeSeries(lines("files_share")),
                Stat(lines("heap_share"), "Cluster heap utilisation", split=Split.CLUSTER),
            ),
        ),
    ),
)
