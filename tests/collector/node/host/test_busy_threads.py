"""The busiest thread of a process that a run's command has started is read, and no rate spans two threads."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model.metric import Series
from collector.model.rates import Readings, rates, update_readings
from collector.model.snapshot import NEVER, Rate, Scrape, Snapshot
from collector.node.host.busy_processes import (
    MAX_THREADED_PROCESSES,
    MAX_THREADS,
    MIN_CPU_S,
    SCAN_INTERVAL_S,
    THREAD_CPU_TIME,
    BusyProcesses,
)
from collector.node.host.cpu import TICKS_PER_S
from collector.node.host.kernel_files import stat_in
from tests.collector.fakes import FakeClock
from tests.collector.node.host.process_files import VARIABLE, set_environment, set_process, set_thread
from tests.waiting import eventually

PROC = Path("/proc")
PID = 20
# A process with idle threads and a thread that is busy until a line arrives on standard input.
PROGRAM = """
import sys, threading
for _ in range(50):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
is_ending = threading.Event()
def work():
    print(threading.get_native_id(), flush=True)
    while not is_ending.is_set():
        pass
threading.Thread(target=work).start()
sys.stdin.readline()
is_ending.set()
sys.stdin.readline()
"""


def scanned(source: BusyProcesses, clock: FakeClock) -> dict[str, float]:
    """Wait for the next scan, and return the CPU time of the threads that are read, by TID."""
    clock.busy(SCAN_INTERVAL_S)
    return cpu_seconds(source)


def cpu_seconds(source: BusyProcesses) -> dict[str, float]:
    """Return the CPU time of the threads that are read, by TID."""
    values = source.read(1.0).values
    times = {series[3]: value for series, value in values.items() if series[0] == THREAD_CPU_TIME.name}
    return {tid: value / TICKS_PER_S for tid, value in times.items() if isinstance(value, int)}


def source_after_first_read(clock: FakeClock, proc: Path) -> BusyProcesses:
    source = BusyProcesses(clock, VARIABLE, proc)
    source.read(1.0)
    return source


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def source(clock: FakeClock, tmp_path: Path) -> BusyProcesses:
    """A source for a machine with a process of a run's command that has two threads."""
    source = source_after_first_read(clock, tmp_path)
    set_process(tmp_path, PID, 30.0)
    set_environment(tmp_path, PID, "PATH=/bin", VARIABLE, "A=b")
    set_thread(tmp_path, PID, PID, 20.0)
    set_thread(tmp_path, PID, PID + 1, 10.0)
    return source


def test_the_thread_with_the_most_cpu_time_since_the_last_scan_is_read(
    source: BusyProcesses, clock: FakeClock, tmp_path: Path
) -> None:
    assert scanned(source, clock) == {"20": 20.0}
    set_thread(tmp_path, PID, PID, 20.5)
    set_thread(tmp_path, PID, PID + 1, 14.0)
    assert cpu_seconds(source) == {"20": 20.5}
    assert scanned(source, clock) == {"21": 14.0}


def test_a_thread_that_has_ended_is_absent_until_the_next_scan(
    source: BusyProcesses, clock: FakeClock, tmp_path: Path
) -> None:
    assert scanned(source, clock) == {"20": 20.0}
    shutil.rmtree(tmp_path / str(PID) / "task" / str(PID))
    assert cpu_seconds(source) == {}
    assert scanned(source, clock) == {"21": 10.0}


@pytest.mark.parametrize("ended", ["task", ""], ids=["while it is read", "before it is read"])
def test_a_process_that_has_ended_is_absent(
    source: BusyProcesses, clock: FakeClock, tmp_path: Path, ended: str
) -> None:
    assert scanned(source, clock) == {"20": 20.0}
    shutil.rmtree(tmp_path / str(PID) / ended)
    assert cpu_seconds(source) == {}
    assert scanned(source, clock) == {}


def test_a_process_that_gets_the_number_of_another_one_is_not_read(
    source: BusyProcesses, clock: FakeClock, tmp_path: Path
) -> None:
    assert scanned(source, clock) == {"20": 20.0}
    set_process(tmp_path, PID, 40.0, start=200)
    assert cpu_seconds(source) == {}


@pytest.mark.parametrize("entries", [(), ("PATH=/bin",), (f"NOT_{VARIABLE}",), (f"{VARIABLE}b",), ("A_RUN_DIR=",)])
def test_other_processes_are_not_read(
    source: BusyProcesses, clock: FakeClock, tmp_path: Path, entries: tuple[str, ...]
) -> None:
    set_environment(tmp_path, PID, *entries)
    assert scanned(source, clock) == {}


def test_a_process_whose_environment_cannot_be_read_is_not_read(
    source: BusyProcesses, clock: FakeClock, tmp_path: Path
) -> None:
    (tmp_path / str(PID) / "environ").unlink()
    assert scanned(source, clock) == {}


def test_the_number_of_processes_is_bounded(clock: FakeClock, tmp_path: Path) -> None:
    source = source_after_first_read(clock, tmp_path)
    pids = range(100, 110)
    for pid in pids:
        set_process(tmp_path, pid, float(pid))
        set_thread(tmp_path, pid, pid, float(pid))
        set_environment(tmp_path, pid, VARIABLE)
    assert scanned(source, clock).keys() == {str(pid) for pid in pids[-MAX_THREADED_PROCESSES:]}


def test_the_number_of_threads_is_bounded(
    source: BusyProcesses, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = {"task": [str(tid) for tid in range(1000, 1001 + MAX_THREADS)], tmp_path.name: [str(PID)]}
    monkeypatch.setattr(os, "listdir", lambda folder: folders[Path(folder).name])
    set_thread(tmp_path, PID, 999 + MAX_THREADS, 30.0)
    set_thread(tmp_path, PID, 1000 + MAX_THREADS, 40.0)
    assert scanned(source, clock) == {str(999 + MAX_THREADS): 30.0}


# In each second, the number of the only thread, whether it is a new one, and its share of a processor.
SECONDS = st.lists(st.tuples(st.sampled_from([PID, PID + 1]), st.booleans(), st.sampled_from([0.0, 0.5, 1.0])))


@given(SECONDS, st.integers(1, 3))
def test_no_rate_spans_two_threads_with_the_same_number(
    tmp_path_factory: pytest.TempPathFactory, seconds: list[tuple[int, bool, float]], scan_every: int
) -> None:
    proc = tmp_path_factory.mktemp("proc")
    clock, readings = FakeClock(), Readings()
    source = source_after_first_read(clock, proc)
    set_process(proc, PID, MIN_CPU_S)
    set_environment(proc, PID, VARIABLE)
    last_tid, start, cpu_s = 0, 0, 0.0
    # The CPU time of the thread at each second, by TID and start time.
    used: dict[tuple[str, str], dict[float, float]] = {}
    for second, (tid, is_new, share) in enumerate(seconds):
        if is_new or tid != last_tid:
            shutil.rmtree(proc / str(PID) / "task", ignore_errors=True)
            last_tid, start, cpu_s = tid, second * TICKS_PER_S, 0.0
        cpu_s += share
        set_thread(proc, PID, tid, cpu_s, start)
        used.setdefault((str(tid), str(start)), {})[float(second)] = cpu_s
        if second % scan_every == 0:
            clock.busy(SCAN_INTERVAL_S)
        scrape = Scrape("processes", float(second), source.read(1.0).values, "boot")
        snapshot = Snapshot("c1", NEVER, (scrape,))
        for series, rate in rates({THREAD_CPU_TIME.name: THREAD_CPU_TIME}, readings, snapshot).values.items():
            assert isinstance(rate, Rate)
            known = used[series[3], series[4]]
            assert rate.increase == pytest.approx(known[second] - known[second - rate.elapsed_s])
        update_readings(readings, snapshot)


@contextmanager
def busy_process(*variables: str) -> Iterator[tuple["subprocess.Popen[str]", IO[str], int]]:
    """Run PROGRAM; yield the process, its standard input and the TID of its busy thread."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **dict(variable.split("=", 1) for variable in variables)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process, process.stdin, int(process.stdout.readline())
        finally:
            process.kill()


def cpu_s_of(folder: Path) -> float:
    """Return the CPU time of a process or thread, in seconds."""
    stat = stat_in(folder)
    return 0.0 if stat is None else stat.cpu_ticks / TICKS_PER_S


def is_busiest(folder: Path, tid: int) -> bool:
    """Return whether a thread has used enough CPU time to be read, and more than its process's first thread."""
    return cpu_s_of(folder / "task" / str(tid)) > MIN_CPU_S + cpu_s_of(folder / "task" / folder.name)


def threads_of(source: BusyProcesses, pid: int) -> dict[Series, int]:
    """Return the threads of a process that a source reads."""
    values = source.read(1.0).values
    return {
        series: value
        for series, value in values.items()
        if series[0] == THREAD_CPU_TIME.name and series[2] == str(pid) and isinstance(value, int)
    }


def test_the_only_busy_thread_of_a_real_process_is_read_until_it_ends() -> None:
    clock = FakeClock()
    source = BusyProcesses(clock, VARIABLE)
    source.read(1.0)
    with busy_process(VARIABLE) as (process, stdin, tid):
        folder = PROC / str(process.pid)
        eventually(lambda: is_busiest(folder, tid))
        clock.busy(SCAN_INTERVAL_S)
        ((series, first),) = threads_of(source, process.pid).items()
        assert series[3] == str(tid)
        process_s = cpu_s_of(folder)
        eventually(lambda: cpu_s_of(folder) > process_s + 0.2)
        ((series, second),) = threads_of(source, process.pid).items()
        assert series[3] == str(tid)
        assert (second - first) / TICKS_PER_S >= 0.1
        stdin.write("\n")
        stdin.flush()
        eventually(lambda: not (folder / "task" / str(tid)).exists())
        assert threads_of(source, process.pid) == {}
    clock.busy(SCAN_INTERVAL_S)
    assert threads_of(source, process.pid) == {}


def test_the_busy_thread_of_another_real_process_is_not_read() -> None:
    clock = FakeClock()
    source = BusyProcesses(clock, VARIABLE)
    source.read(1.0)
    with busy_process(f"{VARIABLE}/other") as (process, _, tid):
        eventually(lambda: is_busiest(PROC / str(process.pid), tid))
        clock.busy(SCAN_INTERVAL_S)
        assert threads_of(source, process.pid) == {}
