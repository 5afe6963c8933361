"""Signals for the nodes' machines, from agents that run on them."""

from functools import partial

from dashboards.expression import Difference, Gauge, Rate, Ratio, where
from dashboards.signals.signal import Signal, Unit

LOCAL = "Absent where the agent does not run on the node's machine."
_CPU = "casstat_cpu_seconds_total"
_PRESSURE = (
    "Absent where the agent does not run on the node's machine, or where the kernel has no pressure stall information."
)

_local = partial(Signal, absent=LOCAL)


def _cpu(name: str, title: str, modes: tuple[str, ...], description: str) -> Signal:
    expression = Ratio(Rate(_CPU, where(mode=modes)), Rate(_CPU))
    return _local(name, title, expression, Unit.RATIO, description, bounded=True)


def _per_s(
    name: str, title: str, metric: str, unit: Unit, description: str, labels: tuple[str, ...] = ("device",)
) -> Signal:
    return _local(name, title, Rate(metric), unit, description, labels)


def _time(name: str, title: str, metric: str, count: str) -> Signal:
    description = "Mean time of a request from queueing to completion (`await` in iostat)."
    return Signal(
        name,
        title,
        Ratio(Rate(metric), Rate(count)),
        Unit.SECONDS,
        description,
        ("device",),
        "Absent while the disk completes no requests of this kind, and where the agent does not run on the node's "
        "machine.",
    )


def _pressure(resource: str, title: str, waited_for: str) -> Signal:
    return Signal(
        f"pressure_{resource}",
        f"{title} pressure",
        Rate(f"node_pressure_{resource}_waiting_seconds_total"),
        Unit.RATIO,
        f"Fraction of the time in which at least one task waited for {waited_for}.",
        absent=_PRESSURE,
        bounded=True,
    )


SIGNALS = (
    _cpu("cpu_user", "CPU user", ("user",), "Fraction of CPU time in user mode."),
    _cpu("cpu_nice", "CPU nice", ("nice",), "Fraction of CPU time in user mode at low priority."),
    _cpu(
        "cpu_system",
        "CPU system",
        ("system", "irq", "softirq"),
        "Fraction of CPU time in the kernel, interrupts included.",
    ),
    _cpu("cpu_iowait", "CPU iowait", ("iowait",), "Fraction of CPU time that is idle while a task waits for a disk."),
    _cpu(
        "cpu_steal", "CPU steal", ("steal",), "Fraction of CPU time that the hypervisor gave to other virtual machines."
    ),
    _local(
        "cpu_busy",
        "CPU utilisation",
        Ratio(Difference(Rate(_CPU), Rate(_CPU, where(mode=("idle", "iowait")))), Rate(_CPU)),
        Unit.RATIO,
        "Fraction of CPU time that is neither idle nor iowait.",
        bounded=True,
    ),
    _per_s("disk_reads", "Disk reads", "node_disk_reads_completed_total", Unit.PER_S, "Completed reads."),
    _per_s("disk_writes", "Disk writes", "node_disk_writes_completed_total", Unit.PER_S, "Completed writes."),
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
    _local(
        "disk_util",
        "Disk utilisation",
        Rate("node_disk_io_time_seconds_total", within_node="max"),
        Unit.RATIO,
        "Fraction of the time with at least one request in flight (`%util` in iostat). A disk that serves requests in "
        "parallel is not saturated at 100%.",
        ("device",),
        bounded=True,
    ),
    _local(
        "disk_free_share",
        "Free disk space ratio",
        Ratio(Gauge("node_filesystem_avail_bytes"), Gauge("node_filesystem_size_bytes")),
        Unit.RATIO,
        "Fraction of free space in the file systems of Cassandra's directories. A compaction needs space for a second "
        "copy of the data that it rewrites.",
        ("mountpoint",),
        bounded=True,
        low_is_worse=True,
    ),
    _local(
        "disk_free",
        "Free disk space",
        Gauge("node_filesystem_avail_bytes"),
        Unit.BYTES,
        "Free space in the file systems of Cassandra's directories.",
        ("mountpoint",),
        low_is_worse=True,
    ),
    _per_s("net_received", "Network received", "node_network_receive_bytes_total", Unit.BYTES_PER_S, "Bytes received."),
    _per_s("net_sent", "Network sent", "node_network_transmit_bytes_total", Unit.BYTES_PER_S, "Bytes sent."),
    _per_s(
        "net_received_drops",
        "Dropped received packets",
        "node_network_receive_drop_total",
        Unit.PER_S,
        "Received packets that the machine dropped because it lacked a buffer or a receiver for them.",
    ),
    _per_s(
        "tcp_retransmits",
        "TCP retransmits",
        "node_netstat_Tcp_RetransSegs",
        Unit.PER_S,
        "Segments that were sent again because they or their acknowledgements were lost.",
        (),
    ),
    _local(
        "memory_available",
        "Available memory",
        Gauge("node_memory_MemAvailable_bytes"),
        Unit.BYTES,
        "Memory available to programs without swapping; it includes most of the page cache.",
        low_is_worse=True,
    ),
    _local(
        "page_cache",
        "Page cache",
        Gauge("node_memory_Cached_bytes"),
        Unit.BYTES,
        "File data in memory. Reads from the page cache do not access the disk.",
    ),
    _local(
        "swap_used",
        "Swap usage",
        Difference(Gauge("node_memory_SwapTotal_bytes"), Gauge("node_memory_SwapFree_bytes")),
        Unit.BYTES,
        "Swap space in use. A JVM whose heap is swapped out can pause for seconds.",
    ),
    _per_s(
        "major_faults",
        "Major page faults",
        "casstat_process_major_faults_total",
        Unit.PER_S,
        "Page faults of Cassandra's process that read from disk: mapped files or swapped memory.",
        (),
    ),
    Signal(
        "clock_error",
        "Clock error bound",
        Gauge("casstat_clock_error_seconds"),
        Unit.SECONDS,
        "Maximum error of the machine's clock according to the kernel. Cassandra resolves conflicting writes by "
        "timestamp.",
        absent="Absent where the agent does not run on the node's machine, and while the clock is not synchronised.",
    ),
    _pressure("cpu", "CPU", "a CPU"),
    _pressure("io", "I/O", "I/O"),
    _pressure("memory", "Memory", "memory"),
)
