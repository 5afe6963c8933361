"""The node dashboard: requests, queues and machines of one or more nodes."""

from dashboards.grafana.panel_model import Dashboard, Row, Split, StateTimeline, TimeSeries, graphs, lines

DASHBOARD = Dashboard(
    "node",
    "Node",
    "Requests, queues and machines of one or more nodes. Select nodes to compare them.",
    (
        Row(
            "State",
            (
                StateTimeline(lines("node_answers"), split=Split.NODE, height=5),
                StateTimeline(lines("native_running"), split=Split.NODE, height=5),
                TimeSeries(lines("nodes_unreachable"), "Unreachable nodes", split=Split.NODE, height=5),
                *graphs("agent_events", labels=("kind",)),
                *graphs("exceptions", "files_share"),
            ),
        ),
        Row(
            "Requests",
            (
                *graphs("reads", "writes", "connections"),
                *graphs("read_p99", "write_p99", "local_share"),
                *graphs("timeouts", "unavailables", "failures", labels=("operation",), top=True),
            ),
        ),
        Row(
            "Thread pools and queues",
            (
                *graphs("requests_pending", "reads_pending", "mutations_pending"),
                *graphs("pools_pending", "pools_active", "pools_blocked", labels=("pool",), top=True),
                *graphs("pools_blocking", "pools_oldest", labels=("pool",), top=True),
                *graphs("native_discarded"),
            ),
        ),
        Row(
            "Inter-node messages",
            (
                *graphs("dropped", labels=("message",), top=True),
                *graphs("message_latency_p99", "read_repairs", "hints"),
                *graphs("hints_failed"),
                TimeSeries(lines(("streams_in", "in"), ("streams_out", "out")), "Streaming throughput"),
            ),
        ),
        Row(
            "CPU and memory",
            (
                TimeSeries(
                    lines(
                        ("cpu_user", "user"),
                        ("cpu_nice", "nice"),
                        ("cpu_system", "system"),
                        ("cpu_iowait", "iowait"),
                        ("cpu_steal", "steal"),
                    ),
                    "CPU",
                ),
                *graphs("jvm_cpu"),
                TimeSeries(
                    lines(("pressure_cpu", "CPU"), ("pressure_io", "disk"), ("pressure_memory", "memory")),
                    "Pressure: CPU, I/O, memory",
                ),
                TimeSeries(lines(("memory_available", "available"), ("page_cache", "page cache")), "Memory"),
                *graphs("swap_used", "major_faults"),
            ),
        ),
        Row(
            "Disks",
            (
                TimeSeries(lines(("disk_reads", "reads"), ("disk_writes", "writes")), "Disk requests"),
                TimeSeries(lines(("disk_read_bytes", "read"), ("disk_written_bytes", "written")), "Disk throughput"),
                TimeSeries(lines(("disk_read_time", "read"), ("disk_write_time", "write")), "Disk latency, mean"),
                *graphs("disk_util", labels=("device",)),
                *graphs("disk_free_share", labels=("mountpoint",)),
                *graphs("load_bytes"),
            ),
        ),
        Row(
            "Network and clock",
            (
                TimeSeries(lines(("net_received", "received"), ("net_sent", "sent")), "Network", width=6),
                *graphs("net_received_drops", labels=("device",), width=6),
                *graphs("tcp_retransmits", "clock_error", width=6),
            ),
        ),
    ),
)
