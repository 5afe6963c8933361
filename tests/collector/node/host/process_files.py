"""Writes the files of processes and threads in a simulated /proc."""

from pathlib import Path

from collector.node.host.cpu import TICKS_PER_S

VARIABLE = "A_RUN_DIR=/runs/a"
"""The environment variable of the processes that a run's command has started."""


def set_process(proc: Path, pid: int, cpu_s: float, name: str = "java", start: int = 100) -> None:
    """Write a process's stat file: `cpu_s` of CPU time, half of it in kernel mode, and `pid` pages of memory."""
    _write_stat(proc / str(pid), pid, cpu_s, name, start)


def set_thread(proc: Path, pid: int, tid: int, cpu_s: float, start: int = 100) -> None:
    """Write a thread's stat file: `cpu_s` of CPU time."""
    _write_stat(proc / str(pid) / "task" / str(tid), tid, cpu_s, "worker", start)


def set_environment(proc: Path, pid: int, *entries: str) -> None:
    """Write the environment variables of a process."""
    (proc / str(pid) / "environ").write_bytes(b"".join(entry.encode() + b"\0" for entry in entries))


def _write_stat(folder: Path, number: int, cpu_s: float, name: str, start: int) -> None:
    ticks = round(cpu_s * TICKS_PER_S / 2)
    fields = ["S", *["0"] * 10, str(ticks), str(ticks), *["0"] * 6, str(start), "0", str(number)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "stat").write_text(f"{number} ({name}) {' '.join(fields)}\n")
