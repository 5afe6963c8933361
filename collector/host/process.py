"""The Cassandra process as the kernel sees it."""

import os

from collector.host.cpu import TICKS_PER_S
from collector.host.kernel_files import Host, read_text
from collector.model.metric import Aggregation, Kind, Metric, Values, WideColumn

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_CPU_S = 1 / TICKS_PER_S

# By the position behind the command's name in /proc/PID/stat, the state being 0 (proc(5)).
STAT = {
    7: Metric("casstat_process_minor_faults_total", Kind.COUNTER, "1", "Page faults served from memory."),
    9: Metric(
        "casstat_process_major_faults_total",
        Kind.COUNTER,
        "1",
        "Page faults that needed the disk.",
        columns=(WideColumn("major_faults_per_s", "MajFlt/s", digits=1),),
    ),
    11: Metric("casstat_process_user_seconds_total", Kind.COUNTER, "seconds", "CPU time in user mode.", scale=_CPU_S),
    12: Metric(
        "casstat_process_system_seconds_total",
        Kind.COUNTER,
        "seconds",
        "CPU time in the kernel.",
        scale=_CPU_S,
    ),
    17: Metric("casstat_process_threads", Kind.GAUGE, "1", "Threads.", across=Aggregation.SUM),
    21: Metric(
        "casstat_process_resident_bytes",
        Kind.GAUGE,
        "bytes",
        "Memory of the process that is in RAM.",
        scale=PAGE_BYTES,
        columns=(WideColumn("process_resident_mb", "RssMB", scale=1 / 2**20),),
        across=Aggregation.SUM,
    ),
}
_FILES = Metric("casstat_process_open_files", Kind.GAUGE, "1", "Open file descriptors.", across=Aggregation.SUM)
METRICS = (*STAT.values(), _FILES)


def read(host: Host) -> Values:
    """Read the process; nothing without one on this machine."""
    if not host.process_exists:
        return {}
    # Not `host.process_dir`, which would turn into this process if Cassandra's ended right now.
    folder = host.proc / str(host.pid)
    values = parse_stat(read_text(folder / "stat"))
    try:
        values[(_FILES.name,)] = len(os.listdir(folder / "fd"))  # noqa: PTH208 - only counted
    except PermissionError:
        # Another user's process: its files are not to be seen, all else is.
        pass
    except OSError:
        # It ended while it was read: what was read last is gone too.
        return {}
    return values


def origin(host: Host) -> str:
    """Return which process it is that is counted."""
    return str(host.pid)


def parse_stat(stat: str) -> Values:
    """Take /proc/PID/stat apart; the command's name may hold anything, so only what follows its last bracket counts."""
    fields = stat.rpartition(")")[2].split()
    return {(metric.name,): int(fields[position]) for position, metric in STAT.items()}
