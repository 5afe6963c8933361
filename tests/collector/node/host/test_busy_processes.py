"""The processes that use the CPU are read, each only while it exists."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model.snapshot import SourceError
from collector.node.host import kernel_files
from collector.node.host.busy_processes import CPU_TIME, CPUS, MAX_PROCESSES, RESIDENT, SCAN_INTERVAL_S, BusyProcesses
from collector.node.host.cpu import TICKS_PER_S
from collector.node.host.kernel_files import parse_stat
from tests.collector.fakes import FakeClock
from tests.collector.node.host.process_files import VARIABLE, set_process


def cpu_seconds(source: BusyProcesses) -> dict[tuple[str, ...], float]:
    """Return the CPU time of each process that a source reads, by name and PID."""
    values = source.read(1.0).values
    times = {series[1:]: value for series, value in values.items() if series[0] == CPU_TIME.name}
    return {labels: value / TICKS_PER_S for labels, value in times.items() if isinstance(value, int)}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def source(clock: FakeClock, tmp_path: Path) -> BusyProcesses:
    """A source after its first read, on a machine with two processes that had already used a lot of CPU time."""
    set_process(tmp_path, 1, 1000.0, "systemd")
    set_process(tmp_path, 20, 5000.0)
    (tmp_path / "stat").touch()
    source = BusyProcesses(clock, VARIABLE, tmp_path)
    assert cpu_seconds(source) == {}
    clock.busy(SCAN_INTERVAL_S)
    return source


def test_processes_that_use_the_cpu_after_the_first_reading_are_read(source: BusyProcesses, tmp_path: Path) -> None:
    set_process(tmp_path, 20, 5001.0)
    set_process(tmp_path, 30, 2.0, "a (strange) name")
    set_process(tmp_path, 31, 0.2, "ls")
    assert cpu_seconds(source) == {("java", "20"): 5001.0, ("a (strange) name", "30"): 2.0}
    assert source.read(1.0).values[RESIDENT.name, "java", "20"] == 20


def test_the_processors_that_a_process_may_use_are_counted(source: BusyProcesses, tmp_path: Path) -> None:
    lists = {20: "0-3,8", 30: "1", 31: "", 32: "0-x"}
    for pid, cpus in lists.items():
        set_process(tmp_path, pid, 5002.0)
        (tmp_path / str(pid) / "status").write_text(f"Name:\tjava\nCpus_allowed:\tff\nCpus_allowed_list:\t{cpus}\n")
    set_process(tmp_path, 33, 2.0)
    values = source.read(1.0).values
    assert {series[2]: value for series, value in values.items() if series[0] == CPUS.name} == {"20": 5, "30": 1}


def test_between_two_scans_only_the_busy_processes_are_read(
    source: BusyProcesses, clock: FakeClock, tmp_path: Path
) -> None:
    set_process(tmp_path, 20, 5001.0)
    assert cpu_seconds(source) == {("java", "20"): 5001.0}
    clock.busy(SCAN_INTERVAL_S - 0.5)
    set_process(tmp_path, 20, 5002.0)
    set_process(tmp_path, 30, 2.0, "latte")
    assert cpu_seconds(source) == {("java", "20"): 5002.0}
    clock.busy(0.5)
    assert cpu_seconds(source) == {("java", "20"): 5002.0, ("latte", "30"): 2.0}


def test_the_time_of_a_scrape_does_not_include_the_scan_of_other_processes(
    source: BusyProcesses, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_text = kernel_files.read_text
    read_at_s: dict[str, float] = {}

    def read_slowly(path: str, *limit: int) -> str:
        clock.busy(1.0)
        read_at_s[path] = clock.monotonic_s()
        return read_text(path, *limit)

    monkeypatch.setattr(kernel_files, "read_text", read_slowly)
    set_process(tmp_path, 20, 5001.0)
    for pid in range(21, 40):
        set_process(tmp_path, pid, 0.0)
    assert source.read(1.0).at_s == read_at_s[f"{tmp_path}/20/stat"] - 1.0


def test_a_process_that_gets_the_number_of_another_one_is_a_new_process(source: BusyProcesses, tmp_path: Path) -> None:
    set_process(tmp_path, 20, 4.0, "latte", start=200)
    assert cpu_seconds(source) == {("latte", "20"): 4.0}


def test_a_busy_process_whose_number_is_reused_is_absent(source: BusyProcesses, tmp_path: Path) -> None:
    set_process(tmp_path, 20, 5001.0)
    assert cpu_seconds(source) == {("java", "20"): 5001.0}
    set_process(tmp_path, 20, 4.0, "latte", start=200)
    assert cpu_seconds(source) == {}


def test_a_process_that_has_ended_is_absent(source: BusyProcesses, tmp_path: Path) -> None:
    set_process(tmp_path, 20, 5001.0)
    (tmp_path / "1" / "stat").unlink()
    assert cpu_seconds(source) == {("java", "20"): 5001.0}
    (tmp_path / "20" / "stat").unlink()
    assert cpu_seconds(source) == {}


def test_the_number_of_processes_is_bounded(source: BusyProcesses, tmp_path: Path) -> None:
    for pid in range(100, 150):
        set_process(tmp_path, pid, float(pid))
    busiest = range(150 - MAX_PROCESSES, 150)
    assert cpu_seconds(source) == {("java", str(pid)): float(pid) for pid in busiest}


def test_without_proc_the_source_fails(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="No such file"):
        BusyProcesses(FakeClock(), VARIABLE, tmp_path / "none").read(1.0)


@given(st.text())
def test_other_text_is_malformed(text: str) -> None:
    with pytest.raises((IndexError, ValueError)):
        parse_stat(text)
