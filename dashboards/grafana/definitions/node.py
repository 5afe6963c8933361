"""The node dashboard: requests, queues and machines of one or more nodes."""

from dashboards.grafana.panel_model import Dashboard, Row, Split, StateTimeline, TimeSeries, lines

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
                TimeSeries(lines("agent_events"), labels=("kind",)),
                TimeSeries(lines("exceptions")),
                TimeSeries(lines("files_share")),
            ),
        ),
        Row(
            "Requests",
            (
                TimeSeries(lines("reads")),
                TimeSeries(lines("writes")),
                TimeSeries(lines("connections")),
                TimeSeries(lines("read_p99")),
                TimeSeries(lines("write_p99")),
                TimeSeries(lines("local_share")),
                TimeSeries(lines("timeouts"), labels=("operation",), top=True),
                TimeSeries(lines("unavailables"), labels=("operation",), top=True),
                TimeSeries(lines("failures"), labels=("operation",), top=True),
            ),
        ),
        Row(
            "Thread pools and queues",
            (
                TimeSeries(lines("requests_pending")),
                TimeSeries(lines("reads_pending")),
                TimeSeries(lines("mutations_pending")),
                TimeSeries(lines("pools_pending"), labels=("pool",), top=True),
                TimeSeries(lines("pools_active"), labels=("pool",), top=True),
                TimeSeries(lines("pools_blocked"), labels=("pool",), top=True),
                TimeSeries(lines("pools_blocking"), labels=("pool",), top=True),
                TimeSeries(lines("pools_oldest"), labels=("pool",), top=True),
                TimeSeries(lines("native_discarded")),
            ),
        ),
        Row(
            "Inter-node messages",
            (
                TimeSeries(lines("dropped"), labels=("message",), top=True),
                TimeSeries(lines("message_latency_p99")),
                TimeSeries(lines("read_repairs")),
                TimeSeries(lines("hints")),
                TimeSeries(lines("hints_failed")),
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
                TimeSeries(lines("jvm_cpu")),
                TimeSeries(
                    lines(("pressure_cpu", "CPU"), ("pressure_io", "disk"), ("pressure_memory", "memory")),
                    "Pressure: CPU, I/O, memory",
                ),
                TimeSeries(lines(("memory_available", "available"), ("page_cache", "page cache")), "Memory"),
                TimeSeries(lines("swap_used")),
                TimeSeries(lines("major_faults")),
            ),
        ),
        Row(
            "Disks",
            (
                TimeSeries(lines(("disk_reads", "reads"), ("disk_writes", "writes")), "Disk requests"),
                TimeSeries(lines(("disk_read_bytes", "read"), ("disk_written_bytes", "written")), "Disk throughput"),
                TimeSeries(lines(("disk_read_time", "read"), ("disk_write_time", "write")), "Disk latency, mean"),
                TimeSeries(lines("disk_util"), labels=("device",)),
                TimeSeries(lines("disk_free_share"), labels=("mountpoint",)),
                TimeSeries(lines("load_bytes")),
            ),
        ),
        Row(
            "Network and clock",
            (
                TimeSeries(lines(("net_received", "received"), ("net_sent", "sent")), "Network", width=6),
                TimeSeries(lines("net_received_drops"), labels=("device",), width=6),
                TimeSeries(lines("tcp_retransmits"), width=6),
                TimeSeries(lines("clock_error"), width=6),
            ),
        ),
    ),
)
