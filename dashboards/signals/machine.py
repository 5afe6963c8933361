"""The machines under the nodes, where the agent runs beside them."""

from dashboards.expression import Difference, Gauge, Rate, Ratio, where
from dashboards.signals.signal import Signal, Unit

LOCAL = "Absent where the agent runs on another machine than the node."
_CPU = "casstat_cpu_seconds_total"
_PRESSURE = "Absent where the kernel counts no pressure."


def _cpu(name: str, title: str, modes: tuple[str, ...], text: str) -> Signal:
    expression = Ratio(Rate(_CPU, where(mode=modes)), Rate(_CPU))
    return Signal(name, title, expression, Unit.RATIO, text, absent=LOCAL, bounded=True)


def _per_s(name: str, title: str, metric: str, unit: Unit, text: str, each: tuple[str, ...] = ("device",)) -> Signal:
    return Signal(name, title, Rate(metric), unit, text, each, LOCAL)


def _time(name: str, title: str, metric: str, count: str) -> Signal:
    text = "Mean time of one request, from when it is queued until it is done: await, as iostat calls it."
    return Signal(
        name,
        title,
        Ratio(Rate(metric), Rate(count)),
        Unit.SECONDS,
        text,
        ("device",),
        "Absent while nothing is asked of the disk.",
    )


SIGNALS = (
    _cpu("cpu_user", "CPU user", ("user",), "Share of the processors' time in programs."),
    _cpu("cpu_nice", "CPU nice", ("nice",), "Share of the processors' time in programs that let others go first."),
    _cpu("cpu_system", "CPU system", ("system", "irq", "softirq"), "Share of the processors' time in the kernel."),
    _cpu("cpu_iowait", "CPU iowait", ("iowait",), "Idle time while some task waits for a disk."),
    _cpu("cpu_steal", "CPU steal", ("steal",), "Time in which the hypervisor let others run."),
    Signal(
        "cpu_busy",
        "CPU utilisation",
        Ratio(Difference(Rate(_CPU), Rate(_CPU, where(mode=("idle", "iowait")))), Rate(_CPU)),
        Unit.RATIO,
        "Share of the processors' time that is neither idle nor waiting for a disk.",
        absent=LOCAL,
        bounded=True,
    ),
    _per_s("disk_reads", "Disk reads", "node_disk_reads_completed_total", Unit.PER_S, "Reads completed."),
    _per_s("disk_writes", "Disk writes", "node_disk_writes_completed_total", Unit.PER_S, "Writes completed."),
    _per_s("disk_read_bytes", "Disk read throughput", "node_disk_read_bytes_total", Unit.BYTES_PER_S, "Bytes read."),
    _per_s(
        "disk_written_bytes",
        "Disk write throughput",
        "node_disk_written_bytes_total",
        Unit.BYTES_PER_S,
        "Bytes written.",
    ),
    _time(
        "disk_read_time",
        "Disk read latency, mean",
        "node_disk_read_time_seconds_total",
        "node_disk_reads_completed_total",
    ),
    _time(
        "disk_write_time",
        "Disk write latency, mean",
        "node_disk_write_time_seconds_total",
        "node_disk_writes_completed_total",
    ),
    Signal(
        "disk_util",
        "Disk utilisation",
        Rate("node_disk_io_time_seconds_total", within_node="max"),
        Unit.RATIO,
        "Share of the time with at least one request under way: %util, as iostat calls it; a disk that does many "
        "things at once is not full at 1.",
        ("device",),
        LOCAL,
        bounded=True,
    ),
    Signal(
        "disk_free_share",
        "Free disk space ratio",
        Ratio(Gauge("node_filesystem_avail_bytes"), Gauge("node_filesystem_size_bytes")),
        Unit.RATIO,
        "Free space of the file systems of Cassandra's folders: compactions need room for a copy.",
        ("mountpoint",),
        LOCAL,
        bounded=True,
        low_is_worse=True,
    ),
    Signal(
        "disk_free",
        "Free disk space",
        Gauge("node_filesystem_avail_bytes"),
        Unit.BYTES,
        "Free space of the file systems of Cassandra's folders.",
        ("mountpoint",),
        LOCAL,
        low_is_worse=True,
    ),
    _per_s("net_received", "Network received", "node_network_receive_bytes_total", Unit.BYTES_PER_S, "Bytes received."),
    _per_s("net_sent", "Network sent", "node_network_transmit_bytes_total", Unit.BYTES_PER_S, "Bytes sent."),
    _per_s(
        "net_received_drops",
        "Dropped packets on receipt",
        "node_network_receive_drop_total",
        Unit.PER_S,
        "Packets that the machine had no room or no use for.",
    ),
    _per_s(
        "tcp_retransmits",
        "TCP retransmits",
        "node_netstat_Tcp_RetransSegs",
        Unit.PER_S,
        "Segments that got lost on their way, or whose receipt did.",
        (),
    ),
    Signal(
        "memory_available",
        "Available memory",
        Gauge("node_memory_MemAvailable_bytes"),
        Unit.BYTES,
        "Memory that a program could have without swapping: the page cache lives in it.",
        absent=LOCAL,
        low_is_worse=True,
    ),
    Signal(
        "page_cache",
        "Page cache",
        Gauge("node_memory_Cached_bytes"),
        Unit.BYTES,
        "Files in memory: reads that are served from here never meet the disk.",
        absent=LOCAL,
    ),
    Signal(
        "swap_used",
        "Swap usage",
        Difference(Gauge("node_memory_SwapTotal_bytes"), Gauge("node_memory_SwapFree_bytes")),
        Unit.BYTES,
        "A JVM whose heap is swapped out stops for seconds.",
        absent=LOCAL,
    ),
    _per_s(
        "major_faults",
        "Major page faults",
        "casstat_process_major_faults_total",
        Unit.PER_S,
        "Of Cassandra's process: reads of mapped files, or memory that was swapped out.",
        (),
    ),
    Signal(
        "clock_error",
        "Clock error bound",
        Gauge("casstat_clock_error_seconds"),
        Unit.SECONDS,
        "How wrong the machine's clock may be, as its kernel knows it: the last write wins by clocks.",
        absent=f"{LOCAL} Absent while nothing keeps it right.",
    ),
    Signal(
        "pressure_cpu",
        "CPU pressure",
        Rate("node_pressure_cpu_waiting_seconds_total"),
        Unit.RATIO,
        "Share of the time in which some task had to wait for a processor.",
        absent=_PRESSURE,
        bounded=True,
    ),
    Signal(
        "pressure_io",
        "I/O pressure",
        Rate("node_pressure_io_waiting_seconds_total"),
        Unit.RATIO,
        "Share of the time in which some task had to wait for a disk.",
        absent=_PRESSURE,
        bounded=True,
    ),
    Signal(
        "pressure_memory",
        "Memory pressure",
        Rate("node_pressure_memory_waiting_seconds_total"),
        Unit.RATIO,
        "Share of the time in which some task had to wait for memory.",
        absent=_PRESSURE,
        bounded=True,
    ),
)
