"""Runs background programs and waits until they respond."""

import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

START_S, STOP_S, POLL_S = 120.0, 60.0, 0.2


def free_port() -> int:
    """Return a free port on 127.0.0.1."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def running(command: Sequence[str], log: Path, environ: Mapping[str, str] | None = None) -> Iterator[None]:
    """Run a program for the duration of the block."""
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output, env=environ) as process:
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


def wait_until(is_up: Callable[[], bool], name: str) -> None:
    """Wait until `is_up` returns true; an OSError means "not yet". Raises TimeoutError."""
    ends_s = time.monotonic() + START_S
    while time.monotonic() < ends_s:
        with suppress(OSError):
            if is_up():
                return
        time.sleep(POLL_S)
    raise TimeoutError(f"{name} did not respond within {START_S:g} s")
