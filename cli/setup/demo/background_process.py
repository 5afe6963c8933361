"""Processes that outlive the command that started them, and checks for free and open ports."""

import contextlib
import signal
import socket
import subprocess
import time
from pathlib import Path

import psutil

from cli.setup.demo.java_runtime import DemoError
from collector.file_access import replace_file

KILL_TIMEOUT_S = 20
POLL_S = 0.1


def end(process: psutil.Process, patience_s: float) -> None:
    """Stop a process with SIGTERM, then with SIGKILL after `patience_s` (at once if 0); wait until it has exited."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(signal.SIGTERM if patience_s else signal.SIGKILL)
        if not _ended(process, patience_s or KILL_TIMEOUT_S):
            process.kill()
            _ended(process, KILL_TIMEOUT_S)


def _ended(process: psutil.Process, patience_s: float) -> bool:
    """Return whether a process exits within `patience_s`. A zombie counts as exited: its parent may never reap it."""
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
    """Return whether the process is still running; another process that reuses its ID does not count."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def write_pid_file(path: Path, child: "subprocess.Popen[bytes]") -> psutil.Process:
    """Write the ID and start time of `child` to `path`, so that later commands find the process."""
    process = psutil.Process(child.pid)
    replace_file(path, f"{process.pid} {process.create_time()}\n".encode())
    return process


def read_pid_file(path: Path) -> psutil.Process | None:
    """Return the process recorded in `path`, or None if there is no record or the process has exited."""
    try:
        pid, created = path.read_text().split()
        process = psutil.Process(int(pid))
        return process if abs(process.create_time() - float(created)) < 1 and alive(process) else None
    except (OSError, ValueError, psutil.NoSuchProcess):
        return None


def command_line(process: psutil.Process | None) -> list[str]:
    """Return the words of a process's command line; none if it has exited."""
    try:
        return process.cmdline() if process else []
    except psutil.NoSuchProcess:
        return []


def require_free(address: str, port: int) -> None:
    """Raise DemoError if the port is in use."""
    if reason := bind_error(address, port):
        raise DemoError(f"{address}:{port}: {reason} (hint: stop the program that uses the port, or use --address)")


def is_free(address: str, port: int) -> bool:
    """Return whether the port can be bound."""
    return not bind_error(address, port)


def bind_error(address: str, port: int) -> str:
    """Return why a server cannot listen on an IP address, or "" if it can."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            return error.strerror or str(error)
    return ""


def listens(address: str, port: int) -> bool:
    """Return whether a server accepts connections at the address."""
    try:
        with socket.create_connection((address, port), timeout=1):
            return True
    except OSError:
        return False
