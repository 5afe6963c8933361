"""nodetool, which every node has: a JVM per question, so run seldom, never through a shell, never without an end."""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from collector.model.snapshot import SourceError
from collector.printable import one_line

MAX_OUTPUT_BYTES = 64 << 20
MAX_ERRORS_BYTES = 64 << 10
CHUNK_BYTES = 1 << 16
KILL_TIMEOUT_S = 2.0
# What lets its JVM start with less than half the CPU, print figures as English has them, and not write each of our
# calls into the history in its user's home.
JVM_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss512k -Duser.language=en -Duser.country=US -Duser.home=/dev/null"
)


class NodetoolError(SourceError):
    """nodetool did not say what it was asked for."""


@dataclass(frozen=True)
class Connection:
    """How nodetool reaches the node: its JMX port (None: nodetool's own choice), and as whom.

    The password stands in a file of its own, as nodetool's -pwf wants it, and is never an argument.
    """

    port: int | None = None
    user: str = ""
    password_file: Path | None = None

    def flags(self) -> list[str]:
        """Return nodetool's flags for it."""
        return [
            *(["-p", str(self.port)] if self.port else []),
            *(["-u", self.user] if self.user else []),
            *(["-pwf", str(self.password_file)] if self.password_file else []),
        ]


class Nodetool:
    """One nodetool, for one node. Several threads may run it at once."""

    def __init__(self, program: Path, connection: Connection, environ: Mapping[str, str]) -> None:
        self.program = program
        self.connection = connection
        options = " ".join(part for part in (environ.get("JVM_OPTS"), JVM_OPTIONS) if part)
        self._environ = {**environ, "LC_ALL": "C", "JVM_OPTS": options}
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def run(self, arguments: Sequence[str], timeout_s: float) -> str:
        """Return what nodetool prints. Raises NodetoolError when it fails, takes too long or prints too much."""
        what = f"nodetool {arguments[0]}"
        deadline_s = time.monotonic() + timeout_s
        process = self._start([str(self.program), *self.connection.flags(), *arguments], what)
        try:
            out, errors = _read(process, deadline_s, what)
            code = _wait(process, deadline_s, what)
        finally:
            _kill(process)
            with self._lock:
                self._running.discard(process)
        text = out.decode(errors="replace")
        if code:
            raise NodetoolError(f"{what}: {_reason(errors.decode(errors='replace') + text) or f'exit code {code}'}")
        if not text.strip():
            raise NodetoolError(f"{what}: printed nothing{_because(errors)}")
        return text

    def close(self) -> None:
        """End what runs, and start nothing more."""
        with self._lock:
            self._closed = True
            for process in self._running:
                _kill(process)

    def _start(self, command: list[str], what: str) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise NodetoolError(f"{what}: not asked any more")
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=self._environ,
                    # Its own group: at the deadline the JVM goes with the script that started it, and Ctrl-C is ours.
                    start_new_session=True,
                )
            except OSError as error:
                raise NodetoolError(f"{self.program}: {error.strerror}: give --nodetool PATH") from None
            self._running.add(process)
            return process


def _read(process: subprocess.Popen[bytes], deadline_s: float, what: str) -> tuple[bytes, bytes]:
    """Return all of its output, and the beginning of its errors."""
    found = {process.stdout: bytearray(), process.stderr: bytearray()}
    limits = {process.stdout: MAX_OUTPUT_BYTES, process.stderr: MAX_ERRORS_BYTES}
    with selectors.DefaultSelector() as selector, process.stdout, process.stderr:  # type: ignore[union-attr]
        for stream in found:
            selector.register(stream, selectors.EVENT_READ, stream)  # type: ignore[arg-type]
        while selector.get_map():
            left_s = deadline_s - time.monotonic()
            ready = selector.select(left_s) if left_s > 0 else []
            if not ready:
                raise NodetoolError(f"{what}: no answer in time, ended{_because(bytes(found[process.stderr]))}")
            for key, _ in ready:
                part = os.read(key.fd, CHUNK_BYTES)
                if not part:
                    selector.unregister(key.fileobj)
                elif len(found[key.data]) < limits[key.data]:
                    found[key.data] += part
                elif key.data is process.stdout:
                    raise NodetoolError(f"{what}: printed more than {MAX_OUTPUT_BYTES >> 20} MiB, ended")
    return bytes(found[process.stdout]), bytes(found[process.stderr])


def _wait(process: subprocess.Popen[bytes], deadline_s: float, what: str) -> int:
    try:
        return process.wait(max(0.1, deadline_s - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise NodetoolError(f"{what}: did not end in time, ended") from None


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the whole group of a process that has not ended; its number is its own until it is waited for."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(KILL_TIMEOUT_S)


def _because(errors: bytes) -> str:
    reason = _reason(errors.decode(errors="replace"))
    return f": {reason}" if reason else ""


def _reason(text: str) -> str:
    """Return the line of nodetool's words that says what went wrong, "" when none does."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    marked = [line for line in lines if line.startswith(("nodetool: ", "error: ", "Error: ", "Exception in"))]
    plain = [line for line in lines if not line.startswith(("at ", "--", "...", "See 'nodetool", "Picked up", "WARN"))]
    return one_line((marked or plain or [""])[0].removeprefix("nodetool: "))
