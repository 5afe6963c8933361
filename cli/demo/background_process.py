"""Processes that outlive the command that started them, and the ports they need."""

import contextlib
import signal
import socket
import subprocess
import time
from pathlib import Path

import psutil

from cli.demo.java_runtime import DemoError

KILL_TIMEOUT_S = 20
POLL_S = 0.1


def end(process: psutil.Process, patience_s: float) -> None:
    """End a process: SIGTERM, and SIGKILL after `patience_s`; return when it is gone."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(signal.SIGTERM if patience_s else signal.SIGKILL)
        if not _ended(process, patience_s or KILL_TIMEOUT_S):
            process.kill()
            _ended(process, KILL_TIMEOUT_S)


def _ended(process: psutil.Process, patience_s: float) -> bool:
    """Wait until a process has ended. It may remain a zombie: its parent may be another command, which goes on."""
    ends_s = time.monotonic() + patience_s
    while time.monotonic() < ends_s:
        try:
            process.wait(POLL_S)
        except psutil.TimeoutExpired:
            if alive(process):
                continue
        return True
    return False


def alive(process: psutil.Process) -> bool:
    """Whether this very process (not another of the same number) still runs."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def write_pid_file(path: Path, child: "subprocess.Popen[bytes]") -> psutil.Process:
    """Note which process `child` is, so that a later command finds it."""
    process = psutil.Process(child.pid)
    temporary = path.with_suffix(".new")
    temporary.write_text(f"{process.pid} {process.create_time()}\n")
    temporary.replace(path)
    return process


def read_pid_file(path: Path) -> psutil.Process | None:
    """Return the process noted in `path`, or None when it is gone."""
    try:
        pid, created = path.read_text().split()
        process = psutil.Process(int(pid))
        return process if abs(process.create_time() - float(created)) < 1 else None
    except (OSError, ValueError, psutil.NoSuchProcess):
        return None


def require_free(address: str, port: int) -> None:
    """Raise DemoError when something listens on the port already."""
    if why := _taken(address, port):
        raise DemoError(
            f"{address}:{port} cannot be used ({why}): stop what listens there,"
            " or choose other addresses with --address"
        )


def is_free(address: str, port: int) -> bool:
    """Return whether nothing listens on the port."""
    return not _taken(address, port)


def _taken(address: str, port: int) -> str:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            return error.strerror or str(error)
    return ""


def listens(address: str, port: int) -> bool:
    """Return whether something takes connections there."""
    try:
        with socket.create_connection((address, port), timeout=1):
            return True
    except OSError:
        return False
