"""Stores load-test runs and their marks in a file beside the journal, and records them as events in the journal.

The runs' total size is bounded in memory and on disk: the oldest ended runs are deleted first, then the oldest active
ones.
"""

import json
import os
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from errno import ENOSPC
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from collector.model.clock import Clock
from collector.model.snapshot import Event, Scrape
from collector.printable import count_text
from exporters.api.agent_api import TooManyChangesError
from exporters.prometheus.agent_health import RunTimes

FILE = "runs.jsonl"
SOURCE = "run"
# Maximum file size, and the size to which the file shrinks when the oldest runs are deleted.
MAX_BYTES, LEFT_BYTES = 4 << 20, 3 << 20
# Maximum size of one run, so that a single run cannot displace all others.
MAX_RUN_BYTES = 1 << 20
# Every record counts as at least this many bytes, to account for its overhead in memory.
MIN_RECORD_BYTES = 256
# Limits in case another program has written to the file: only its last MAX_READ_BYTES are read, and lines longer than
# MAX_LINE_BYTES are skipped.
MAX_READ_BYTES, MAX_LINE_BYTES = 128 << 20, 64 << 10
# The start of every record; other lines are not parsed.
PREFIX = b'{"run": '
# Maximum number of events that can be waiting for the next tick.
MAX_EVENTS = 1000
# Maximum number of runs, and of marks per run, served to Prometheus: each of them is a separate series.
SHOWN, SHOWN_MARKS = 10, 20

Run = dict[str, Any]


@dataclass
class _StoredRun:
    """A run, the size of its records, and its lease: None, or how long it lasts and when it was last renewed."""

    run: Run
    bytes: int
    lease_s: float | None = None
    renewed_s: float = 0.0

    def is_expired(self, now_s: float) -> bool:
        """Return whether the run is active although its lease has expired."""
        return self.lease_s is not None and self.run["end_s"] is None and now_s - self.renewed_s > self.lease_s


class RunStore:
    """The runs of one agent. Each change is stored as a line in a file, and becomes an event in the next tick."""

    name = SOURCE

    def __init__(self, folder: Path, clock: Clock, log: Callable[[str], None]) -> None:
        """Load the runs in the folder. Raises OSError if they cannot be read."""
        self._path = folder / FILE
        self._clock = clock
        self._log = log
        self._lock = threading.Lock()
        self._runs: dict[str, _StoredRun] = {}
        self._bytes = 0
        self._events: list[Event] = []
        if self._path.exists():
            self._load()

    def read(self, timeout_s: float) -> Scrape:
        """End the runs whose leases have expired; return the changes since the last tick as events."""
        del timeout_s
        with self._lock:
            self._end_expired()
            events, self._events = tuple(self._events), []
        return Scrape(SOURCE, self._clock.monotonic_s(), events=events)

    def all_runs(self) -> list[Run]:
        """Return the runs, oldest first."""
        with self._lock:
            return [_copy(kept.run) for kept in self._runs.values()]

    def times(self) -> tuple[RunTimes, ...]:
        """Return the times of the `SHOWN` most recent runs, oldest first."""
        with self._lock:
            last = list(islice(reversed(self._runs.values()), SHOWN))
            return tuple(_times(kept.run) for kept in reversed(last))

    def begin(self, name: str, lease_s: float | None = None) -> Run:
        """Begin a run and return it. With a lease, it ends unless it is renewed every `lease_s` seconds.

        Raises OSError and TooManyChangesError.
        """
        with self._lock:
            content = {"run": secrets.token_hex(6), "begin_s": self._clock.wall_s(), "name": name}
            (run,) = self._record([content if lease_s is None else {**content, "lease_s": lease_s}])
            self._events.append(Event("run", f"run {name} began", run["begin_s"]))
            return run

    def mark(self, identifier: str, text: str) -> Run:
        """Add a mark with the current time to a run, and return the run.

        Raises KeyError, ValueError, OSError and TooManyChangesError.
        """
        with self._lock:
            self._open(identifier)
            time_s = self._clock.wall_s()
            content = {"run": identifier, "mark_s": time_s, "text": text}
            if self._runs[identifier].bytes + _bytes(_line(content)) > MAX_RUN_BYTES:
                raise ValueError(f"the run has no room for more marks (limit {MAX_RUN_BYTES >> 20} MiB)")
            (run,) = self._record([content])
            self._events.append(Event("run", f"run {run['name']}: {text}", time_s))
            return run

    def renew(self, identifier: str) -> Run:
        """Renew a run's lease and return the run. Raises KeyError and ValueError."""
        with self._lock:
            run = self._open(identifier)
            self._runs[identifier].renewed_s = self._clock.monotonic_s()
            return _copy(run)

    def end(self, identifier: str) -> Run:
        """End a run at the current time and return it. Raises KeyError, ValueError, OSError and TooManyChangesError."""
        with self._lock:
            self._open(identifier)
            (run,) = self._record([{"run": identifier, "end_s": self._clock.wall_s()}])
            self._events.append(Event("run", f"run {run['name']} ended", run["end_s"]))
            return run

    def _end_expired(self) -> None:
        """End the runs whose leases have expired, in one write; the next tick tries again with those that remain."""
        now_s, end_s = self._clock.monotonic_s(), self._clock.wall_s()
        expired = [
            {"run": identifier, "end_s": end_s} for identifier, stored in self._runs.items() if stored.is_expired(now_s)
        ]
        # The disk may be full.
        with suppress(OSError):
            for run in self._record(expired[: MAX_EVENTS - len(self._events)]):
                text = f"run {run['name']} ended because its lease expired"
                self._events.append(Event("run", text, end_s))

    def _open(self, identifier: str) -> Run:
        run = self._runs[identifier].run
        if run["end_s"] is not None:
            raise ValueError(f"the run {run['name']} has ended")
        return run

    def _record(self, contents: Sequence[Mapping[str, Any]]) -> list[Run]:
        """Write changes to disk, and only then apply them; return the changed runs.

        If the oldest runs are deleted to make room, changes to them are omitted; the run of the first change is kept.
        Raises OSError and TooManyChangesError.
        """
        if not contents:
            return []
        if len(self._events) + len(contents) > MAX_EVENTS:
            raise TooManyChangesError(f"{MAX_EVENTS} changes are waiting for the next tick")
        lines = [(content, _line(content)) for content in contents]
        size = sum(_bytes(line) for _, line in lines)
        if self._bytes + size > MAX_BYTES:
            kept = self._without_oldest(size, contents[0]["run"])
            self._rewrite(kept)
            self._log(
                f"{self._path}: deleted {count_text(len(self._runs) - len(kept), 'old run')}"
                f" (limit {MAX_BYTES >> 20} MiB)"
            )
            self._runs, self._bytes = kept, _total(kept)
            lines = [(content, line) for content, line in lines if "begin_s" in content or content["run"] in kept]
        _append(self._path, b"".join(line for _, line in lines))
        for content, line in lines:
            self._apply(content, _bytes(line))
        return [_copy(self._runs[content["run"]].run) for content, _ in lines]

    def _load(self) -> None:
        """Load the file. Raises OSError."""
        malformed = 0
        with self._path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > MAX_READ_BYTES:
                file.seek(size - MAX_READ_BYTES)
            for line in _lines(file):
                malformed += not self._load_line(line)
                if self._bytes > MAX_BYTES:
                    self._runs = self._without_oldest(0, "")
                    self._bytes = _total(self._runs)
        if malformed:
            self._log(f"{self._path}: skipped {count_text(malformed, 'malformed line')}")
        if size > MAX_BYTES:
            kept_runs = count_text(len(self._runs), "run")
            self._log(f"{self._path}: larger than {MAX_BYTES >> 20} MiB; kept {kept_runs}")
            # If the disk is full, the file keeps its size, and the next change tries again to shrink it.
            with suppress(OSError):
                self._rewrite(self._runs)
                size = 0
        # Skipped lines also take up space in the file.
        self._bytes = max(self._bytes, size)

    def _load_line(self, line: bytes) -> bool:
        if not line.startswith(PREFIX):
            return False
        try:
            content = json.loads(line.decode(errors="replace"))
            kept = self._runs.get(content["run"])
            if kept is not None and "mark_s" in content and kept.bytes + _bytes(line) > MAX_RUN_BYTES:
                return False
            self._apply(content, _bytes(line))
        except (ValueError, TypeError, KeyError, RecursionError):
            return False
        return True

    def _apply(self, content: Mapping[str, Any], size: int) -> None:
        identifier = str(content["run"])
        if "begin_s" in content:
            begun = {"id": identifier, "name": str(content["name"]), "begin_s": float(content["begin_s"])}
            lease_s = None if content.get("lease_s") is None else float(content["lease_s"])
            # When the agent restarts, the lease starts again in full.
            now_s = self._clock.monotonic_s()
            self._runs[identifier] = _StoredRun({**begun, "end_s": None, "marks": []}, 0, lease_s, now_s)
        elif "end_s" in content:
            self._runs[identifier].run["end_s"] = float(content["end_s"])
        else:
            mark = {"time_s": float(content["mark_s"]), "text": str(content["text"])}
            self._runs[identifier].run["marks"].append(mark)
        self._runs[identifier].bytes += size
        self._bytes += size

    def _without_oldest(self, room: int, needed: str) -> dict[str, _StoredRun]:
        """Return the runs without the oldest ones, so that `room` more bytes fit; the run `needed` is always kept."""
        kept, size = dict(self._runs), _total(self._runs)
        for identifier in sorted(kept, key=lambda key: kept[key].run["end_s"] is None):
            if size + room <= LEFT_BYTES:
                break
            if identifier != needed:
                size -= kept.pop(identifier).bytes
        return kept

    def _rewrite(self, kept: Mapping[str, _StoredRun]) -> None:
        """Replace the file with one that contains only these runs. Raises OSError."""
        new_file = self._path.with_name(f".{FILE}.new")
        with new_file.open("wb") as file:
            file.writelines(_line(content) for stored in kept.values() for content in _contents(stored))
            file.flush()
            os.fsync(file.fileno())
        new_file.replace(self._path)


def _append(path: Path, lines: bytes) -> None:
    """Append lines to a file completely or not at all. Raises OSError."""
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":
            # An earlier write was interrupted in the middle of a line.
            lines = b"\n" + lines
        if os.write(file, lines) < len(lines):
            os.ftruncate(file, size)
            raise OSError(ENOSPC, os.strerror(ENOSPC), str(path))
        os.fdatasync(file)
    finally:
        os.close(file)


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the remaining lines of a file; if a line is too long, yield only its end."""
    while line := file.readline(MAX_LINE_BYTES):
        if line.endswith(b"\n") or len(line) < MAX_LINE_BYTES:
            yield line


def _line(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode(errors="replace") + b"\n"


def _contents(stored: _StoredRun) -> Iterable[Mapping[str, Any]]:
    """Yield the records of a run, as stored on disk."""
    run, lease = stored.run, {} if stored.lease_s is None else {"lease_s": stored.lease_s}
    yield {"run": run["id"], "begin_s": run["begin_s"], "name": run["name"], **lease}
    for mark in run["marks"]:
        yield {"run": run["id"], "mark_s": mark["time_s"], "text": mark["text"]}
    if run["end_s"] is not None:
        yield {"run": run["id"], "end_s": run["end_s"]}


def _bytes(line: bytes) -> int:
    return max(len(line), MIN_RECORD_BYTES)


def _total(kept: Mapping[str, _StoredRun]) -> int:
    return sum(stored.bytes for stored in kept.values())


def _times(run: Run) -> RunTimes:
    marks = tuple((mark["time_s"], mark["text"]) for mark in run["marks"][-SHOWN_MARKS:])
    return RunTimes(run["id"], run["name"], run["begin_s"], run["end_s"], marks)


def _copy(run: Run) -> Run:
    return {**run, "marks": list(run["marks"])}
