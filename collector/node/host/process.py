"""Metrics of the Cassandra process: CPU time, processors, memory, page faults, threads and open files (proc(5))."""

import os
from functools import partial

from collector.model.metric import Aggregation, Kind, Metric, Values, WideColumn, rate_column
from collector.model.snapshot import SourceError
from collector.node.host.cpu import TICKS_PER_S
from collector.node.host.kernel_files import Host, read_text

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# The kernel supports fewer processors than this (CONFIG_NR_CPUS).
MAX_CPU = 1 << 16

_cpu_time = partial(Metric, kind=Kind.COUNTER, unit="seconds", scale=1 / TICKS_PER_S)
# The metric in each field of /proc/PID/stat. Field 0 is the state, which follows the command name.
STAT = {
    7: Metric("casstat_process_minor_faults_total", Kind.COUNTER, "1", "Number of page faults served from memory."),
    9: Metric(
        "casstat_process_major_faults_total",
        Kind.COUNTER,
        "1",
        "Number of page faults that required disk access.",
        columns=(rate_column("major_faults_per_s", "MajFlt/s", "Page faults per second that required disk access"),),
    ),
    11: _cpu_time("casstat_process_user_seconds_total", help="CPU time in user mode, in seconds."),
    12: _cpu_time("casstat_process_system_seconds_total", help="CPU time in kernel mode, in seconds."),
    17: Metric("casstat_process_threads", Kind.GAUGE, "1", "Number of threads.", across=Aggregation.SUM),
    21: Metric(
        "casstat_process_resident_bytes",
        Kind.GAUGE,
        "bytes",
        "Resident memory of the process in bytes.",
        scale=PAGE_BYTES,
        columns=(
            WideColumn("process_resident_mb", "RssMB", "Resident memory of Cassandra's process, MiB", scale=1 / 2**20),
        ),
        across=Aggregation.SUM,
    ),
}
_FILES = Metric(
    "casstat_process_open_files", Kind.GAUGE, "1", "Number of open file descriptors.", across=Aggregation.SUM
)
ALLOWED_CPUS = Metric(
    "casstat_process_allowed_cpus", Kind.TEXT, "", "List of the processors that the process may use, such as 0-3,8."
)
METRICS = (*STAT.values(), _FILES, ALLOWED_CPUS)


def read(host: Host) -> Values:
    """Read the metrics of the Cassandra process; return no values if it is not running on this machine."""
    if not host.process_exists:
        return {}
    # Do not use `host.process_dir`: if Cassandra exits now, it returns casstat's own directory.
    folder = host.proc / str(host.pid)
    # The command name may contain spaces and parentheses.
    fields = read_text(folder / "stat").rpartition(")")[2].split()
    values: Values = {(metric.name,): int(fields[index]) for index, metric in STAT.items()}
    try:
        if allowed_cpus := parse_allowed_cpus(read_text(folder / "status")):
            values[(ALLOWED_CPUS.name,)] = allowed_cpus
        values[(_FILES.name,)] = len(os.listdir(folder / "fd"))  # noqa: PTH208 - only counted
    except PermissionError:
        # Without root privileges, another user's open files cannot be counted; everything else is readable.
        pass
    except (OSError, SourceError):
        # The process exited while it was being read.
        return {}
    return values


def origin(host: Host) -> str:
    """Return the PID of the Cassandra process."""
    return str(host.pid)


def parse_allowed_cpus(status: str) -> str:
    """Return the list of processors in /proc/PID/status that the process may use, such as `0-3,8`; "" if absent."""
    return status.partition("Cpus_allowed_list:")[2].partition("\n")[0].strip()


def cpu_numbers(cpu_list: str) -> list[int]:
    """Return the numbers of the processors in a list such as `0-3,8`, as in cpuset(7). Raises ValueError."""
    numbers: list[int] = []
    for part in cpu_list.split(","):
        first, _, last = part.partition("-")
        numbers += range(int(first), min(int(last or first), MAX_CPU) + 1)
    return numbers
