"""Uploads the agent's journal to object storage, with `casstat upload` in a process of its own.

The sampling process never loads the client library of the store, and the memory of an upload is free afterwards.
"""

import random
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.launch import casstat_command
from collector.printable import one_line
from collector.recording.journal_upload import lost_ticks
from collector.recording.object_store import object_store_name
from collector.recording.writer import folder_name
from exporters.metrics_page.self_metrics import SinkHealth
from exporters.sinks.shipping.checkpoint import upload_checkpoint
from exporters.sinks.shipping.shipper import Backoff

EVERY_S = 300.0
# An upload that takes longer than this is stopped; the next one continues after the last complete part.
LIMIT_S = 3600.0
# The time for the last upload when the agent stops.
LAST_S = 20.0
NICE = 10
# The number of an upload's lines that are logged.
MAX_LINES = 20


@dataclass(frozen=True)
class Ended:
    """How an upload ended: the problem as one line, or "", and the lines that it logged before."""

    problem: str = ""
    notes: Sequence[str] = ()


RunUpload = Callable[[Sequence[str], float], Ended]
"""Runs an upload with these arguments and a time limit in seconds."""


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
        self._checkpoint = upload_checkpoint(state, self.name, folder_name(node))
        self._lost_before = lost_ticks(self._checkpoint)
        self._lost_ticks = 0
        self._notes: Sequence[str] = ()
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
        return SinkHealth(
            self.name,
            not self._reason,
            lag_s,
            failures=self._failures,
            lost_ticks=self._lost_ticks,
            reason=self._reason,
        )

    def _upload_repeatedly(self) -> None:
        while True:
            # Cleared first, so that a stop between the two lines is not missed.
            self._wake.clear()
            is_last = self._is_stopping
            began_s = time.monotonic()
            ended = self._run(self._arguments, LAST_S if is_last else LIMIT_S)
            problem = ended.problem
            for line in ended.notes:
                # An upload that fails repeats what it has noted.
                if line not in self._notes:
                    self._log(line)
            self._notes = ended.notes if problem else ()
            self._lost_ticks = max(lost_ticks(self._checkpoint) - self._lost_before, self._lost_ticks)
            if problem and _cause(problem) != _cause(self._reason):
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


def _cause(problem: str) -> str:
    """Return a problem without the object that it begins with, which may differ from one attempt to the next."""
    _, separator, cause = problem.partition(": ")
    return cause if separator else problem


def run_upload(arguments: Sequence[str], limit_s: float) -> Ended:
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
        return Ended(f"the upload did not end within {limit_s:g} s")
    except OSError as error:
        return Ended(f"cannot start the upload: {error.strerror}")
    lines = [
        one_line(line.removeprefix("casstat: "))
        for line in ended.stderr.decode(errors="replace").splitlines()[-MAX_LINES:]
    ]
    if not ended.returncode:
        return Ended(notes=lines)
    return Ended(lines[-1], lines[:-1]) if lines else Ended(f"exit code {ended.returncode}")
