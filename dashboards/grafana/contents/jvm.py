"""Cassandra's JVM: whether it stops for garbage collection, and why."""

from dashboards.grafana.panel_model import Dashboard, Graph, Number, Row, Split, Worst, of

NODE = Split.NODE
COLLECTOR = ("collector",)

BOARD = Dashboard(
    "jvm",
    "JVM and GC",
    "Whether Cassandra's JVM stops for garbage collection, and why. A node that collects answers nobody.",
    (
        Row(
            "Garbage collection",
            (
                Graph(of("outside_gc"), split=NODE, width=12),
                Worst(of("gc_pause_share"), "GC pause time", split=NODE, width=12),
                Graph(of("gc_pause_share"), each=COLLECTOR),
                Graph(of("gc_pause_mean"), each=COLLECTOR),
                Graph(of("gc_last"), each=COLLECTOR),
                Graph(of("gc_share"), each=COLLECTOR),
                Graph(of("gc_collections"), each=COLLECTOR),
                Graph(of("gc_mean"), each=COLLECTOR),
                Graph(of("read_p999"), text="Pauses show here first.", width=12),
                Graph(of("jvm_cpu"), width=12),
            ),
        ),
        Row(
            "Memory",
            (
                Graph(of("heap_used"), split=NODE),
                Graph(of("heap_share"), split=NODE),
                Graph(of("nonheap_used"), split=NODE),
                Graph(of("swap_used")),
                Graph(of("major_faults")),
                Graph(of("buffer_misses"), each=("pool",)),
            ),
        ),
        Row(
            "Threads and files",
            (
                Graph(of("jvm_threads")),
                Graph(of("files_share")),
                Number(of("heap_share"), "Heap utilisation of the cluster", split=Split.CLUSTER),
            ),
        ),
    ),
)
