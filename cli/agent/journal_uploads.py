"""Uploads the agent's journal to object storage, with `casstat upload` in a process of its own.

The sampling process never loads the client library of the store, and the memory of an upload is free afterwards.
"""

import random
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from cli.launch import casstat_command
from collector.objects.object_store import object_store_name
from collector.printable import one_line
from exporters.shipping.retry_delay import Backoff
from exporters.sink_health import SinkHealth

EVERY_S = 300.0
# An upload that takes longer than this is stopped; the next one continues after the last complete part.
LIMIT_S = 3600.0
# The time for the last upload when the agent stops.
LAST_S = 20.0
NICE = 10

RunUpload = Callable[[Sequence[str], float], str]
"""Runs an upload with these arguments and a time limit in seconds; returns the problem as one line, or ""."""


class JournalUploads:
    """Uploads a journal to one URL every five minutes, when a run ends, and when the agent stops."""

    exports_page = False

    def __init__(
        self, url: str, journal: Path, node: str, state: Path, log: Callable[[str], None], run: RunUpload | None = None
    ) -> None:
        """Prepare uploads of `journal` to the directory `node` at `url`; `run` runs an upload."""
        self.name = object_store_name(url)
        self._arguments = [str(journal), url, "--node", node, "--state", str(state)]
        self._log = log
        self._run = run or run_upload
        self._backoff = Backoff(random.random)
        self._wake = threading.Event()
        self._is_stopping = False
        self._thread = threading.Thread(target=self._upload_repeatedly, name=f"upload {self.name}", daemon=True)
        self._reason = ""
        self._failures = 0
        self._complete_s = time.monotonic()

    def start(self) -> None:
        self._thread.start()

    def upload_now(self) -> None:
        """Start an upload without waiting for the next time."""
        self._wake.set()

    def stop(self) -> None:
        """Upload a last time, and end."""
        self._is_stopping = True
        self._wake.set()

    def wait(self, patience_s: float) -> None:
        """Wait until the last upload has ended."""
        self._thread.join(patience_s)

    def health(self) -> SinkHealth:
        # The store is always up to EVERY_S behind, which is not a problem.
        lag_s = max(time.monotonic() - self._complete_s - EVERY_S, 0.0) if self._reason else 0.0
        return SinkHealth(self.name, not self._reason, lag_s, failures=self._failures, reason=self._reason)

    def _upload_repeatedly(self) -> None:
        while True:
            # Cleared first, so that a stop between the two lines is not missed.
            self._wake.clear()
            is_last = self._is_stopping
            began_s = time.monotonic()
            problem = self._run(self._arguments, LAST_S if is_last else LIMIT_S)
            if problem and problem != self._reason:
                self._log(f"{self.name}: {problem}")
            elif self._reason and not problem:
                self._log(f"{self.name}: uploading again")
            self._reason = problem
            self._failures += bool(problem)
            if not problem:
                self._complete_s = began_s
                self._backoff.reset()
            if is_last:
                return
            self._wake.wait(self._backoff.next_s(None) if problem else EVERY_S)


def run_upload(arguments: Sequence[str], limit_s: float) -> str:
    """Run `casstat upload` at low priority, with a session of its own so that signals to the agent do not reach it."""
    command = ["nice", "-n", str(NICE), *casstat_command("upload", *arguments)]
    try:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=limit_s,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"the upload did not end within {limit_s:g} s"
    except OSError as error:
        return f"cannot start the upload: {error.strerror}"
    if not ended.returncode:
        return ""
    lines = ended.stderr.decode(errors="replace").splitlines()
    return one_line(lines[-1].removeprefix("casstat: ")) if lines else f"exit code {ended.returncode}"
