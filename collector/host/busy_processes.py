"""CPU time and memory of the processes that use the processors of a client host (/proc/PID/stat, proc(5))."""

import os
from dataclasses import dataclass
from heapq import nlargest
from operator import itemgetter
from pathlib import Path

from collector.host.cpu import TICKS_PER_S
from collector.host.kernel_files import read_text
from collector.host.process import PAGE_BYTES
from collector.model.clock import Clock
from collector.model.metric import Aggregation, Kind, Metric, Owner, Values
from collector.model.snapshot import Scrape, SourceError

CPU_TIME = Metric(
    "casstat_client_process_cpu_seconds_total",
    Kind.COUNTER,
    "seconds",
    "CPU time of a process on a client host, in user and kernel mode, in seconds.",
    ("process", "pid"),
    scale=1 / TICKS_PER_S,
    owner=Owner.MACHINE,
)
RESIDENT = Metric(
    "casstat_client_process_resident_bytes",
    Kind.GAUGE,
    "bytes",
    "Resident memory of a process on a client host, in bytes.",
    ("process", "pid"),
    scale=PAGE_BYTES,
    across=Aggregation.SUM,
    owner=Owner.MACHINE,
)
METRICS = (CPU_TIME, RESIDENT)
# A process is read once it has used this much CPU time since the first reading.
MIN_CPU_S = 0.5
MAX_PROCESSES = 30


@dataclass(frozen=True)
class ProcessStat:
    """A process: its name, when it started, its CPU time in clock ticks, and its resident memory in pages."""

    name: str
    start: int
    cpu_ticks: int
    resident_pages: int


class BusyProcesses:
    """Reads the processes that have used the most CPU time since the first reading."""

    name = "processes"

    def __init__(self, clock: Clock, proc: Path = Path("/proc")) -> None:
        self._clock = clock
        self._proc = proc
        # The CPU time of each process at the first reading. The key includes the process's start time, because
        # PIDs are reused.
        self._initial_ticks: dict[tuple[int, int], int] = {}
        self._is_first = True

    def read(self, timeout_s: float) -> Scrape:
        """Read the processes. Raises SourceError if /proc cannot be read."""
        now_s = self._clock.monotonic_s()
        stats = self._stats()
        if self._is_first:
            self._initial_ticks = {(pid, stat.start): stat.cpu_ticks for pid, stat in stats.items()}
            self._is_first = False
        used = {pid: stat.cpu_ticks - self._initial_ticks.get((pid, stat.start), 0) for pid, stat in stats.items()}
        busiest = nlargest(MAX_PROCESSES, used.items(), key=itemgetter(1))
        values: Values = {}
        for pid, ticks in busiest:
            if ticks >= MIN_CPU_S * TICKS_PER_S:
                stat = stats[pid]
                values[CPU_TIME.name, stat.name, str(pid)] = stat.cpu_ticks
                values[RESIDENT.name, stat.name, str(pid)] = stat.resident_pages
        return Scrape(self.name, now_s, values, origin="boot")

    def _stats(self) -> dict[int, ProcessStat]:
        """Return all processes by number. Raises SourceError."""
        try:
            pids = [int(name) for name in os.listdir(self._proc) if name.isdecimal()]  # noqa: PTH208 - only names
        except OSError as error:
            raise SourceError(f"{self._proc}: {error.strerror}") from None
        stats = {}
        for pid in pids:
            try:
                stats[pid] = parse_stat(read_text(self._proc / str(pid) / "stat"))
            except (SourceError, IndexError, ValueError):
                # The process has ended.
                continue
        return stats


def parse_stat(stat: str) -> ProcessStat:
    """Parse /proc/PID/stat, whose second field, the name, may contain spaces and parentheses.

    Raises IndexError and ValueError for other text.
    """
    before, _, after = stat.rpartition(")")
    fields = after.split()
    return ProcessStat(before.partition("(")[2], int(fields[19]), int(fields[11]) + int(fields[12]), int(fields[21]))
