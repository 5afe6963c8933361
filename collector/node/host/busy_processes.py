"""CPU time, memory and processors of the busiest processes on a client host (/proc/PID, proc(5)).

The busiest thread of a load generator is read, too: a generator with one busy thread cannot produce more load, even if
the process may use more processors.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from heapq import nlargest
from itertools import islice
from math import inf
from operator import itemgetter
from pathlib import Path

from collector.file_access import file_errors
from collector.model.clock import Clock
from collector.model.metric import Aggregation, Kind, Metric, Owner, Values
from collector.model.snapshot import Scrape, SourceError
from collector.node.host.cpu import TICKS_PER_S
from collector.node.host.kernel_files import ProcessStat, read_text, stat_in, text_in
from collector.node.host.process import PAGE_BYTES, cpu_numbers, parse_allowed_cpus

THREAD_CPU_TIME = Metric(
    "casstat_client_thread_cpu_seconds_total",
    Kind.COUNTER,
    "seconds",
    "CPU time of the busiest thread of a process that a run's command started on a client host, in seconds; `start` is "
    "the thread's start time in clock ticks since boot, because TIDs are reused.",
    ("process", "pid", "tid", "start"),
    scale=1 / TICKS_PER_S,
    owner=Owner.MACHINE,
)
# Only the first threads of the busiest processes are read, because reading a thread takes 15 to 30 µs of CPU time.
MAX_THREADED_PROCESSES = 3
MAX_THREADS = 300
_of_process = partial(Metric, labels=("process", "pid"), owner=Owner.MACHINE)
CPU_TIME = _of_process(
    "casstat_client_process_cpu_seconds_total",
    Kind.COUNTER,
    "seconds",
    "CPU time of a process on a client host, in user and kernel mode, in seconds.",
    scale=1 / TICKS_PER_S,
)
RESIDENT = _of_process(
    "casstat_client_process_resident_bytes",
    Kind.GAUGE,
    "bytes",
    "Resident memory of a process on a client host, in bytes.",
    scale=PAGE_BYTES,
    across=Aggregation.SUM,
)
CPUS = _of_process(
    "casstat_client_process_cpus",
    Kind.GAUGE,
    "1",
    "Number of processors that a process on a client host may use.",
    across=Aggregation.SUM,
)
METRICS = (CPU_TIME, RESIDENT, CPUS, THREAD_CPU_TIME)
# A process is busy once it has used this much CPU time since the first reading.
MIN_CPU_S = 0.5
MAX_PROCESSES = 30
# All processes are read at this interval to find the busy ones; in between, only the busy ones are read, because a
# machine may have thousands of processes.
SCAN_INTERVAL_S = 5.0


class BusyThreads:
    """Reads the busiest thread of each of the busiest processes that a run's command has started.

    `scan` finds these threads, and `read` reads only them.
    """

    def __init__(self, proc: Path, variable: str) -> None:
        """Create a reader; `variable`, as NAME=VALUE, is in the environment of the command's processes, and no others.

        The value must differ between runs, because several runs may use the same host.
        """
        self._proc = proc
        self._variable = variable
        # The CPU time of each process and thread in the last scan, by number and start time.
        self._process_ticks: dict[tuple[int, int], int] = {}
        self._thread_ticks: dict[tuple[int, int], int] = {}
        # The TID and start time of the busiest thread of each process, by PID and start time.
        self._busiest: dict[tuple[int, int], tuple[int, int]] = {}

    def scan(self, processes: Mapping[int, ProcessStat]) -> None:
        """Find the threads of `processes`, by PID, that have used the most CPU time since the last scan."""
        last_ticks, self._process_ticks = self._process_ticks, _ticks(processes)
        used = {key: ticks - last_ticks.get(key, 0) for key, ticks in self._process_ticks.items()}
        by_use = sorted(used, key=lambda key: used[key], reverse=True)
        of_command = islice((key for key in by_use if self._is_of_command(key[0])), MAX_THREADED_PROCESSES)
        last_thread_ticks, self._thread_ticks = self._thread_ticks, {}
        self._busiest = {}
        for process in of_command:
            ticks = _ticks(dict(self._threads(process[0])))
            self._thread_ticks |= ticks
            used = {thread: cpu_ticks - last_thread_ticks.get(thread, 0) for thread, cpu_ticks in ticks.items()}
            if used:
                self._busiest[process] = max(used, key=lambda thread: used[thread])

    def read(self, processes: Mapping[int, ProcessStat]) -> Values:
        """Return the CPU time of the threads that still exist; `processes` are the processes that do, by PID."""
        values: Values = {}
        for (pid, process_start), (tid, start) in self._busiest.items():
            process = processes.get(pid)
            if process is None or process.start != process_start:
                continue
            thread = stat_in(self._proc / str(pid) / "task" / str(tid))
            if thread is not None and thread.start == start:
                values[THREAD_CPU_TIME.name, process.name, str(pid), str(tid), str(start)] = thread.cpu_ticks
        return values

    def _is_of_command(self, pid: int) -> bool:
        """Return whether the process has the environment variable; False if its environment cannot be read.

        Other users' environments cannot be read.
        """
        return self._variable in text_in(self._proc / str(pid) / "environ").split("\0")

    def _threads(self, pid: int) -> Iterator[tuple[int, ProcessStat]]:
        """Yield the TIDs and values of a process's first threads."""
        # Creating a Path for each thread would take a third of the time.
        folder = f"{self._proc}/{pid}/task"
        try:
            tids = [int(name) for name in os.listdir(folder) if name.isdecimal()]  # noqa: PTH208 - only names
        except OSError:
            # The process has ended.
            return
        for tid in tids[:MAX_THREADS]:
            stat = stat_in(f"{folder}/{tid}")
            if stat is not None:
                yield tid, stat


def _ticks(stats: Mapping[int, ProcessStat]) -> dict[tuple[int, int], int]:
    """Return the CPU time in clock ticks by number and start time."""
    return {(number, stat.start): stat.cpu_ticks for number, stat in stats.items()}


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
            self._initial_ticks = _ticks(stats)
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
        with file_errors(self._proc, SourceError):
            return [int(name) for name in os.listdir(self._proc) if name.isdecimal()]  # noqa: PTH208 - only names

    def _stats(self, pids: Iterable[int]) -> dict[int, ProcessStat]:
        """Return the processes in `pids` that still exist, by PID."""
        stats = {pid: stat_in(self._proc / str(pid)) for pid in pids}
        return {pid: stat for pid, stat in stats.items() if stat is not None}
