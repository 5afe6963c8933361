"""CPU time, memory and processors of the busiest processes on a client host (/proc/PID, proc(5))."""

import os
from collections.abc import Iterable, Mapping
from heapq import nlargest
from math import inf
from operator import itemgetter
from pathlib import Path

from collector.model.clock import Clock
from collector.model.metric import Aggregation, Kind, Metric, Owner, Values
from collector.model.snapshot import Scrape, SourceError
from collector.node.host.busy_threads import THREAD_CPU_TIME, BusyThreads
from collector.node.host.cpu import TICKS_PER_S
from collector.node.host.kernel_files import read_text
from collector.node.host.process import PAGE_BYTES, cpu_numbers, parse_allowed_cpus
from collector.node.host.process_stat import ProcessStat, stat_in

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
CPUS = Metric(
    "casstat_client_process_cpus",
    Kind.GAUGE,
    "1",
    "Number of processors that a process on a client host may use.",
    ("process", "pid"),
    across=Aggregation.SUM,
    owner=Owner.MACHINE,
)
METRICS = (CPU_TIME, RESIDENT, CPUS, THREAD_CPU_TIME)
# A process is busy once it has used this much CPU time since the first reading.
MIN_CPU_S = 0.5
MAX_PROCESSES = 30
# All processes are read at this interval to find the busy ones; in between, only the busy ones are read, because a
# machine may have thousands of processes.
SCAN_INTERVAL_S = 5.0


class BusyProcesses:
    """Reads the processes that have used the most CPU time since the first call to `read`.

    Of those that a run's command has started, it also reads the busiest threads.
    """

    name = "processes"

    def __init__(self, clock: Clock, variable: str, proc: Path = Path("/proc")) -> None:
        """Create a source; `variable` is described in `BusyThreads`."""
        self._clock = clock
        self._proc = proc
        # The CPU time of each process at the first reading. The key includes the process's start time, because
        # PIDs are reused.
        self._initial_ticks: dict[tuple[int, int], int] | None = None
        self._scanned_s = -inf
        # The start times of the busy processes, and the numbers of processors that they may use, by PID.
        self._busy: dict[int, int] = {}
        self._cpus: dict[int, int] = {}
        self._threads = BusyThreads(proc, variable)

    def read(self, timeout_s: float) -> Scrape:
        """Read the processes. Raises SourceError if /proc cannot be read."""
        now_s = self._clock.monotonic_s()
        if now_s - self._scanned_s >= SCAN_INTERVAL_S:
            all_stats = self._stats(self._pids())
            self._busy = self._busiest(all_stats)
            self._cpus = self._allowed_cpus()
            self._threads.scan({pid: all_stats[pid] for pid in self._busy})
            self._scanned_s = now_s
            # The scan may take long, and rates need the time at which the busy processes are read.
            now_s = self._clock.monotonic_s()
        stats = self._stats(self._busy)
        values: Values = {}
        for pid, start in self._busy.items():
            stat = stats.get(pid)
            if stat is not None and stat.start == start:
                values[CPU_TIME.name, stat.name, str(pid)] = stat.cpu_ticks
                values[RESIDENT.name, stat.name, str(pid)] = stat.resident_pages
                if pid in self._cpus:
                    values[CPUS.name, stat.name, str(pid)] = self._cpus[pid]
        values |= self._threads.read(stats)
        return Scrape(self.name, now_s, values, origin="boot")

    def _busiest(self, stats: Mapping[int, ProcessStat]) -> dict[int, int]:
        """Return the start times of the busiest processes, by PID."""
        if self._initial_ticks is None:
            self._initial_ticks = {(pid, stat.start): stat.cpu_ticks for pid, stat in stats.items()}
        initial_ticks = self._initial_ticks
        used = {pid: stat.cpu_ticks - initial_ticks.get((pid, stat.start), 0) for pid, stat in stats.items()}
        busiest = nlargest(MAX_PROCESSES, used.items(), key=itemgetter(1))
        return {pid: stats[pid].start for pid, ticks in busiest if ticks >= MIN_CPU_S * TICKS_PER_S}

    def _allowed_cpus(self) -> dict[int, int]:
        """Return the numbers of processors that the busy processes may use, by PID, where they are known."""
        cpus = {}
        for pid in self._busy:
            try:
                cpus[pid] = len(cpu_numbers(parse_allowed_cpus(read_text(self._proc / str(pid) / "status"))))
            except (SourceError, ValueError):
                # The process has ended, or the list is malformed.
                continue
        return cpus

    def _pids(self) -> list[int]:
        """Return the PIDs of all processes. Raises SourceError."""
        try:
            return [int(name) for name in os.listdir(self._proc) if name.isdecimal()]  # noqa: PTH208 - only names
        except OSError as error:
            raise SourceError(f"{self._proc}: {error.strerror}") from None

    def _stats(self, pids: Iterable[int]) -> dict[int, ProcessStat]:
        """Return the processes in `pids` that still exist, by PID."""
        stats = {pid: stat_in(self._proc / str(pid)) for pid in pids}
        return {pid: stat for pid, stat in stats.items() if stat is not None}
