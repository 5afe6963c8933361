"""CPU time of the busiest threads of a load generator (/proc/PID/task, proc(5)).

A load generator with one busy thread cannot produce more load, even if the process may use more processors.
"""

import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from collector.model.metric import Kind, Metric, Owner, Values
from collector.model.snapshot import SourceError
from collector.node.host.cpu import TICKS_PER_S
from collector.node.host.kernel_files import read_text
from collector.node.host.process_stat import ProcessStat, stat_in

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
MAX_PROCESSES = 3
MAX_THREADS = 300


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
        of_command = islice((key for key in by_use if self._is_of_command(key[0])), MAX_PROCESSES)
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
        try:
            environment = read_text(self._proc / str(pid) / "environ")
        except SourceError:
            return False
        return self._variable in environment.split("\0")

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
