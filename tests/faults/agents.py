"""`casstat agent` in a subprocess, and access to its API, metrics and journal."""

import contextlib
import gzip
import json
import queue
import re
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from collector.recording.frames import Damage
from collector.recording.journal_files import journal_files
from collector.recording.reader import Entry, read
from tests.faults.program import PATIENCE_S, command, environment

# A series and its value; a time may follow.
Result = TypeVar("Result")
SAMPLE = re.compile(r"^([^#\s{]+(?:\{.*\})?) (\S+)", re.MULTILINE)
SERVING = re.compile(r"casstat: serving (\S+):(\d+)")


class RunningAgent:
    """An agent on a free port. It is killed when the `with` block ends."""

    def __init__(self, journal: Path, *arguments: str, listen: str = "127.0.0.1:0", **environ: str) -> None:
        self.journal = journal
        command_line = ["agent", "--journal-dir", str(journal), "--listen", listen, *arguments]
        self._process = subprocess.Popen(
            command(*command_line),
            env=environment(**environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.stderr_lines: list[str] = []
        self._pending: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.base = ""

    def __enter__(self) -> "RunningAgent":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        assert "Traceback" not in "".join(self.stderr_lines), "".join(self.stderr_lines)

    def _read(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as stderr:
            for line in stderr:
                self.stderr_lines.append(line)
                self._pending.put(line)
        self._pending.put(None)

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_for_line(self, text: str) -> str:
        """Wait for the next line on stderr that contains `text`, and return it; fail after PATIENCE_S."""
        ends_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                line = self._pending.get(timeout=max(ends_s - time.monotonic(), 0))
            except queue.Empty:
                line = None
            assert line is not None, f"{text!r} was not printed: {self.stderr_lines}"
            if text in line:
                return line

    def wait_until_serving(self) -> "RunningAgent":
        """Wait until the agent is listening and has taken two ticks."""
        match = SERVING.search(self.wait_for_line("serving"))
        assert match
        self.base = f"http://{match[1]}:{match[2]}"
        self.until(lambda: self.value("casstat_ticks_total") >= 2)
        return self

    def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        request = urllib.request.Request(f"{self.base}{path}", headers=headers)  # noqa: S310 - loopback
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310
                body = answer.read()
                return answer.status, gzip.decompress(body) if answer.headers["Content-Encoding"] == "gzip" else body
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def json(self, path: str) -> Any:
        status, body = self.get(path)
        assert status == 200, body
        return json.loads(body)

    def post(self, path: str, content: Any) -> Any:
        request = urllib.request.Request(  # noqa: S310 - loopback
            f"{self.base}{path}", json.dumps(content).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310
            return json.loads(answer.read())

    def series(self) -> dict[str, float]:
        """Return the values of all series on /metrics, keyed by series."""
        status, body = self.get("/metrics")
        assert status == 200
        return {found[1]: float(found[2]) for found in SAMPLE.finditer(body.decode())}

    def values(self, name: str, *labels: str) -> list[float]:
        """Return the values of a metric's series that have these labels, such as `operation="Read"`."""
        series = self.series().items()
        return [v for s, v in series if s.partition("{")[0] == name and all(label in s for label in labels)]

    def value(self, name: str, *labels: str) -> float:
        """Return the value of the only series of a metric that has these labels.

        Wait for it: after a tick in which the node did not answer in time, there is none.
        """
        (value,) = self.until(lambda: self.values(name, *labels))
        return value

    def until(self, holds: Callable[[], Result]) -> Result:
        """Wait until a condition holds, and return its value; fail after PATIENCE_S."""
        ends_s = time.monotonic() + PATIENCE_S
        while not (result := holds()):
            assert time.monotonic() < ends_s, f"timed out; stderr: {self.stderr_lines}"
            threading.Event().wait(0.05)
        return result

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def end(self, number: int | None, patience_s: float = PATIENCE_S) -> int:
        """Send a signal, if any, wait for the process to exit, and return the exit code."""
        if number is not None:
            self.send(number)
        code = self._process.wait(patience_s)
        self._reader.join(PATIENCE_S)
        return code

    def entries(self) -> list[Entry]:
        """Return the entries of the journal, which must be undamaged."""
        files = list(journal_files(self.journal)) if self.journal.exists() else []
        records = [record for file in files for record in read(file)]
        assert not any(isinstance(record, Damage) for record in records), records
        return [record for record in records if isinstance(record, Entry)]

    def entries_so_far(self) -> list[Entry]:
        """Return the entries of a journal that is being written; its last record may be incomplete."""
        with contextlib.suppress(OSError):
            return [
                record for file in journal_files(self.journal) for record in read(file) if isinstance(record, Entry)
            ]
        return []
