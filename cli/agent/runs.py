"""Runs: what somebody calls the time of a load test, with marks in it; kept beside the journal, and events in it."""

import json
import os
import secrets
import threading
from collections.abc import Callable, Mapping
from errno import ENOSPC
from itertools import islice
from pathlib import Path
from typing import Any

from collector.clock import Clock
from collector.model import Batch, Event
from exporters.prometheus.health import RunTimes

FILE = "runs.jsonl"
SOURCE = "run"
# More than anybody begins; a file that somebody else wrote must not take all memory.
MOST = 10_000
MOST_MARKS = 10_000
# What Prometheus is told of them: each is a series.
SHOWN, SHOWN_MARKS = 10, 20

Run = dict[str, Any]


class Runs:
    """The runs of one agent; a line in a file for each thing that happens to one, and an event in the next tick."""

    name = SOURCE

    def __init__(self, folder: Path, clock: Clock, say: Callable[[str], None]) -> None:
        """Take up the runs in the folder. Raises OSError when they cannot be read."""
        self._path = folder / FILE
        self._clock = clock
        self._lock = threading.Lock()
        self._runs: dict[str, Run] = {}
        self._events: list[Event] = []
        if self._path.exists():
            with self._path.open(encoding="utf-8", errors="replace") as lines:
                wrong = sum(not self._took(line) for line in lines)
            if wrong:
                say(f"{self._path}: {wrong} lines tell of no run and are left out")

    def read(self, timeout_s: float) -> Batch:
        """Return as events what happened to runs since the tick before."""
        del timeout_s
        with self._lock:
            events, self._events = tuple(self._events), []
        return Batch(SOURCE, self._clock.monotonic_s(), events=events)

    def every(self) -> list[Run]:
        """Return the runs, the oldest first."""
        with self._lock:
            return [_copy(run) for run in self._runs.values()]

    def times(self) -> tuple[RunTimes, ...]:
        """Return when the last runs were, the oldest first."""
        with self._lock:
            last = list(islice(reversed(self._runs.values()), SHOWN))
            return tuple(_times(run) for run in reversed(last))

    def begin(self, name: str) -> Run:
        """Begin a run now. Raises OSError, and ValueError when there are too many."""
        with self._lock:
            if len(self._runs) >= MOST:
                raise ValueError(f"there are {MOST} runs already: move {self._path} away")
            run = self._happened({"run": secrets.token_hex(6), "begin_s": self._clock.wall_s(), "name": name})
            self._events.append(Event("run", f"run {name} began", run["begin_s"]))
            return run

    def mark(self, identifier: str, text: str) -> Run:
        """Add a mark to a run now. Raises KeyError, ValueError and OSError."""
        with self._lock:
            before = self._open(identifier)
            if len(before["marks"]) >= MOST_MARKS:
                raise ValueError(f"the run has {MOST_MARKS} marks already")
            time_s = self._clock.wall_s()
            run = self._happened({"run": identifier, "mark_s": time_s, "text": text})
            self._events.append(Event("run", f"run {run['name']}: {text}", time_s))
            return run

    def end(self, identifier: str) -> Run:
        """End a run now. Raises KeyError, ValueError and OSError."""
        with self._lock:
            self._open(identifier)
            run = self._happened({"run": identifier, "end_s": self._clock.wall_s()})
            self._events.append(Event("run", f"run {run['name']} ended", run["end_s"]))
            return run

    def _open(self, identifier: str) -> Run:
        run = self._runs[identifier]
        if run["end_s"] is not None:
            raise ValueError(f"the run {run['name']} has ended")
        return run

    def _happened(self, content: Mapping[str, Any]) -> Run:
        """Keep what happened on disk, and only then for true."""
        line = json.dumps(content, ensure_ascii=False).encode(errors="replace") + b"\n"
        file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            size = os.fstat(file).st_size
            if size and os.pread(file, 1, size - 1) != b"\n":
                # Somebody was stopped within a line.
                line = b"\n" + line
            if os.write(file, line) < len(line):
                os.ftruncate(file, size)
                raise OSError(ENOSPC, os.strerror(ENOSPC), str(self._path))
            os.fdatasync(file)
        finally:
            os.close(file)
        self._take(content)
        return _copy(self._runs[content["run"]])

    def _took(self, line: str) -> bool:
        try:
            content = json.loads(line)
            if len(self._runs) < MOST:
                self._take(content)
        except (ValueError, TypeError, KeyError, RecursionError):
            return False
        return True

    def _take(self, content: Mapping[str, Any]) -> None:
        identifier = str(content["run"])
        if "begin_s" in content:
            begun = {"id": identifier, "name": str(content["name"]), "begin_s": float(content["begin_s"])}
            self._runs[identifier] = {**begun, "end_s": None, "marks": []}
        elif "end_s" in content:
            self._runs[identifier]["end_s"] = float(content["end_s"])
        else:
            mark = {"time_s": float(content["mark_s"]), "text": str(content["text"])}
            self._runs[identifier]["marks"].append(mark)


def _times(run: Run) -> RunTimes:
    marks = tuple((mark["time_s"], mark["text"]) for mark in run["marks"][-SHOWN_MARKS:])
    return RunTimes(run["id"], run["name"], run["begin_s"], run["end_s"], marks)


def _copy(run: Run) -> Run:
    return {**run, "marks": list(run["marks"])}
