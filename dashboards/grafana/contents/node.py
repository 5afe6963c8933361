"""One node, or some beside each other: what it is asked, where work waits, what its machine does."""

from dashboards.grafana.panel_model import Dashboard, Graph, Row, Split, States, of

BOARD = Dashboard(
    "node",
    "Node",
    "One node, or some beside each other. What it is asked, where its work waits, what its machine does.",
    (
        Row(
            "State",
            (
                States(of("node_answers"), split=Split.NODE, height=5),
                States(of("native_running"), split=Split.NODE, height=5),
                Graph(of("nodes_unreachable"), "Unreachable nodes", split=Split.NODE, height=5),
                Graph(of("agent_events"), each=("kind",)),
                Graph(of("exceptions")),
                Graph(of("files_share")),
            ),
        ),
        Row(
            "Requests",
            (
                Graph(of("reads")),
                Graph(of("writes")),
                Graph(of("connections")),
                Graph(of("read_p99")),
                Graph(of("write_p99")),
                Graph(of("local_share")),
                Graph(of("timeouts"), each=("operation",), top=True),
                Graph(of("unavailables"), each=("operation",), top=True),
                Graph(of("failures"), each=("operation",), top=True),
            ),
        ),
        Row(
            "Thread pools and queues",
            (
                Graph(of("requests_pending")),
                Graph(of("reads_pending")),
                Graph(of("mutations_pending")),
                Graph(of("pools_pending"), each=("pool",), top=True),
                Graph(of("pools_active"), each=("pool",), top=True),
                Graph(of("pools_blocked"), each=("pool",), top=True),
                Graph(of("pools_blocking"), each=("pool",), top=True),
                Graph(of("pools_oldest"), each=("pool",), top=True),
                Graph(of("native_discarded")),
            ),
        ),
        Row(
            "Messages between nodes",
            (
                Graph(of("dropped"), each=("message",), top=True),
                Graph(of("message_latency_p99")),
                Graph(of("read_repairs")),
                Graph(of("hints")),
                Graph(of("hints_failed")),
                Graph(of(("streams_in", "in"), ("streams_out", "out")), "Streaming throughput"),
            ),
        ),
        Row(
            "CPU and memory",
            (
                Graph(
                    of(
                        ("cpu_user", "user"),
                        ("cpu_nice", "nice"),
                        ("cpu_system", "system"),
                        ("cpu_iowait", "iowait"),
                        ("cpu_steal", "steal"),
                    ),
                    "CPU",
                ),
                Graph(of("jvm_cpu")),
                Graph(
                    of(("pressure_cpu", "CPU"), ("pressure_io", "disk"), ("pressure_memory", "memory")),
                    "Pressure: CPU, I/O, memory",
                ),
                Graph(of(("memory_available", "available"), ("page_cache", "page cache")), "Memory"),
                Graph(of("swap_used")),
                Graph(of("major_faults")),
            ),
        ),
        Row(
            "Disks",
            (
                Graph(of(("disk_reads", "reads"), ("disk_writes", "writes")), "Disk requests"),
                Graph(of(("disk_read_bytes", "read"), ("disk_written_bytes", "written")), "Disk throughput"),
                Graph(of(("disk_read_time", "read"), ("disk_write_time", "write")), "Disk latency, mean"),
                Graph(of("disk_util"), each=("device",)),
                Graph(of("disk_free_share"), each=("mountpoint",)),
                Graph(of("load_bytes")),
            ),
        ),
        Row(
            "Network and clock",
            (
                Graph(of(("net_received", "received"), ("net_sent", "sent")), "Network", width=6),
                Graph(of("net_received_drops"), each=("device",), width=6),
                Graph(of("tcp_retransmits"), width=6),
                Graph(of("clock_error"), width=6),
            ),
        ),
    ),
)
