"""`casstat agent` in a process of its own, and what it serves."""

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
from typing import Any

from collector.journal.frames import Damage
from collector.journal.reader import Entry, read
from collector.journal.segments import journal_files
from tests.faults.program import PATIENCE_S, command, environment

SERVING = re.compile(r"casstat: serving (\S+):(\d+)")


class RunningAgent:
    """An agent on a port that is free; killed when the block ends."""

    def __init__(self, journal: Path, *arguments: str, listen: str = "127.0.0.1:0", **more: str) -> None:
        self.journal = journal
        given = ["agent", "--journal-dir", str(journal), "--listen", listen, *arguments]
        self._process = subprocess.Popen(
            command(*given),
            env=environment(**more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[str] = []
        self._news: queue.Queue[str | None] = queue.Queue()
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
        assert "Traceback" not in "".join(self.said), "".join(self.said)

    def _read(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as stderr:
            for line in stderr:
                self.said.append(line)
                self._news.put(line)
        self._news.put(None)

    @property
    def pid(self) -> int:
        return self._process.pid

    def hear(self, words: str) -> str:
        """Return the next line on stderr with these words."""
        ends_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                line = self._news.get(timeout=max(ends_s - time.monotonic(), 0))
            except queue.Empty:
                line = None
            assert line is not None, f"{words!r} was not said: {self.said}"
            if words in line:
                return line

    def served(self) -> "RunningAgent":
        """Wait until it serves, and for its second tick."""
        found = SERVING.search(self.hear("serving"))
        assert found
        self.base = f"http://{found[1]}:{found[2]}"
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
        """Return what /metrics shows now."""
        status, body = self.get("/metrics")
        assert status == 200
        lines = (line for line in body.decode().splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    def values(self, name: str, *labels: str) -> list[float]:
        """Return the values of a metric's series with these labels, such as `operation="Read"`."""
        found = self.series().items()
        return [v for s, v in found if s.partition("{")[0] == name and all(label in s for label in labels)]

    def value(self, name: str, *labels: str) -> float:
        """Return the value of the one series."""
        (found,) = self.values(name, *labels)
        return found

    def until(self, holds: Callable[[], object]) -> None:
        """Wait until it holds; it is looked at again with each of the agent's ticks."""
        ends_s = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < ends_s, f"it never held: {self.said}"
            threading.Event().wait(0.05)

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def end(self, number: int | None, patience_s: float = PATIENCE_S) -> int:
        """Send a signal, if any, wait for the end and return the exit code."""
        if number is not None:
            self.send(number)
        code = self._process.wait(patience_s)
        self._reader.join(PATIENCE_S)
        return code

    def entries(self) -> list[Entry]:
        """Return what the journal holds."""
        files = list(journal_files(self.journal)) if self.journal.exists() else []
        found = [each for file in files for each in read(file)]
        assert not any(isinstance(each, Damage) for each in found), found
        return [each for each in found if isinstance(each, Entry)]

    def rows(self) -> list[Entry]:
        """Return what the journal holds while it is written: the end may be under way."""
        with contextlib.suppress(OSError):
            return [each for file in journal_files(self.journal) for each in read(file) if isinstance(each, Entry)]
        return []
