"""CPU time, memory and processors of the busiest processes on a client host (/proc/PID, proc(5)).

The busiest thread of a load generator is read, too: a generator with one busy thread cannot produce more load, even if
the process may use more processors.
"""

import os
from collections.abc import Mapping
from functools import partial
from heapq import nlargest
from itertools import islice
from math import inf
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


Key = tuple[int, int]
"""The number of a process or thread, and its start time, because PIDs and TIDs are reused."""


class BusyProcesses:
    """Reads the processes that have used the most CPU time since the first call to `read`.

    Of those that a run's command has started, it also reads the thread that has used the most since the last scan.
    """

    name = "processes"

    def __init__(self, clock: Clock, variable: str, proc: Path = Path("/proc")) -> None:
        """Create a source; `variable`, as NAME=VALUE, is in the environment of the command's processes, and no others.

        The value must differ between runs, because several runs may use the same host.
        """
        self._clock = clock
        self._variable = variable
        self._proc = proc
        # The CPU time of each process at the first reading, and that of each busy process and thread in the last scan.
        self._initial_ticks: dict[Key, int] | None = None
        self._process_ticks: dict[Key, int] = {}
        self._thread_ticks: dict[Key, int] = {}
        self._scanned_s = -inf
        self._busy: list[Key] = []
        # The number of processors that each busy process may use, and its busiest thread, where they are known.
        self._cpus: dict[Key, int] = {}
        self._threads: dict[Key, Key] = {}

    def read(self, timeout_s: float) -> Scrape:
        """Read the processes. Raises SourceError if /proc cannot be read."""
        now_s = self._clock.monotonic_s()
        if now_s - self._scanned_s >= SCAN_INTERVAL_S:
            self._scan()
            self._scanned_s = now_s
            # The scan may take long, and rates need the time at which the busy processes are read.
            now_s = self._clock.monotonic_s()
        processes = {process: stat for process in self._busy if (stat := _stat_of(self._proc, process))}
        values: Values = {}
        for process, stat in processes.items():
            pid = str(process[0])
            values[CPU_TIME.name, stat.name, pid] = stat.cpu_ticks
            values[RESIDENT.name, stat.name, pid] = stat.resident_pages
            if process in self._cpus:
                values[CPUS.name, stat.name, pid] = self._cpus[process]
        for process, thread in self._threads.items():
            if process in processes and (stat := _stat_of(self._tasks(process), thread)):
                series = THREAD_CPU_TIME.name, processes[process].name, *map(str, (process[0], *thread))
                values[series] = stat.cpu_ticks
        return Scrape(self.name, now_s, values, origin="boot")

    def _scan(self) -> None:
        """Find the busiest processes and threads. Raises SourceError."""
        with file_errors(self._proc, SourceError):
            ticks = _ticks_in(self._proc)
        if self._initial_ticks is None:
            self._initial_ticks = ticks
        used = _increases(self._initial_ticks, ticks)
        busiest = nlargest(MAX_PROCESSES, used, key=used.__getitem__)
        self._busy = [process for process in busiest if used[process] >= MIN_CPU_S * TICKS_PER_S]
        self._cpus = self._allowed_cpus()
        self._scan_threads({process: ticks[process] for process in self._busy})

    def _scan_threads(self, ticks: dict[Key, int]) -> None:
        """Find the busiest threads, given the CPU time of the busy processes."""
        used, self._process_ticks = _increases(self._process_ticks, ticks), ticks
        by_use = sorted(used, key=used.__getitem__, reverse=True)
        last_ticks, self._thread_ticks, self._threads = self._thread_ticks, {}, {}
        for process in islice(filter(self._is_of_command, by_use), MAX_THREADED_PROCESSES):
            try:
                of_threads = _ticks_in(self._tasks(process), MAX_THREADS)
            except OSError:
                # The process has ended.
                continue
            self._thread_ticks |= of_threads
            if used := _increases(last_ticks, of_threads):
                self._threads[process] = max(used, key=used.__getitem__)

    def _tasks(self, process: Key) -> Path:
        return self._proc / str(process[0]) / "task"

    def _is_of_command(self, process: Key) -> bool:
        """Return whether the process has the environment variable; False if its environment cannot be read.

        Other users' environments cannot be read.
        """
        return self._variable in text_in(self._proc / str(process[0]) / "environ").split("\0")

    def _allowed_cpus(self) -> dict[Key, int]:
        """Return the numbers of processors that the busy processes may use, where they are known."""
        cpus = {}
        for process in self._busy:
            try:
                status = read_text(self._proc / str(process[0]) / "status")
                cpus[process] = len(cpu_numbers(parse_allowed_cpus(status)))
            except (SourceError, ValueError):
                # The process has ended, or the list is malformed.
                continue
        return cpus


def _ticks_in(folder: Path, most: int | None = None) -> dict[Key, int]:
    """Return the CPU time, in clock ticks, of the first processes or threads in a folder of /proc. Raises OSError."""
    numbers = [int(name) for name in os.listdir(folder) if name.isdecimal()]  # noqa: PTH208 - only names
    # Creating a Path for each thread would take a third of the time.
    stats = {number: stat_in(f"{folder}/{number}") for number in numbers[:most]}
    return {(number, stat.start): stat.cpu_ticks for number, stat in stats.items() if stat is not None}


def _stat_of(folder: Path, key: Key) -> ProcessStat | None:
    """Return a process or thread in a folder of /proc; None if it has ended."""
    number, start = key
    stat = stat_in(f"{folder}/{number}")
    return stat if stat is not None and stat.start == start else None


def _increases(before: Mapping[Key, int], after: Mapping[Key, int]) -> dict[Key, int]:
    return {key: ticks - before.get(key, 0) for key, ticks in after.items()}
