"""Stores load-test runs and their marks in a file beside the journal, and records them as events in the journal.

The runs' total size is limited, in memory and on disk. To make room, the oldest ended runs are deleted first, and then
the oldest active ones.
"""

import json
import os
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from collector.agents import run_records
from collector.agents.run_records import FILE, Run, StoredRun, line_of, size_of, total_size
from collector.model.clock import Clock
from collector.model.snapshot import Event, Scrape
from collector.printable import count_text
from collector.redaction.redactor import Redactor
from exporters.api.endpoint import TooManyChangesError
from exporters.metrics_page.self_metrics import RunTimes

SOURCE = "run"
# Maximum file size, and the size to which the file shrinks when the oldest runs are deleted.
MAX_BYTES, LEFT_BYTES = 4 << 20, 3 << 20
# Maximum size of one run, so that a single run cannot displace all others.
MAX_RUN_BYTES = 1 << 20
# Another program may have enlarged the file; only its last MAX_READ_BYTES are read.
MAX_READ_BYTES = 128 << 20
# Maximum number of events that can be waiting for the next tick.
MAX_EVENTS = 1000
# Maximum number of runs, and of marks per run, served to Prometheus: each of them is a separate series.
SHOWN, SHOWN_MARKS = 10, 20


class RunStore:
    """The runs of one agent. Each change is stored as a record in a file, and becomes an event in the next tick."""

    name = SOURCE

    def __init__(self, folder: Path, clock: Clock, log: Callable[[str], None]) -> None:
        """Load the runs that are stored in `folder`, if any. Raises OSError if they cannot be read."""
        self._path = folder / FILE
        self._clock = clock
        self._log = log
        self._lock = threading.Lock()
        self._runs: dict[str, StoredRun] = {}
        self._bytes = 0
        self._events: list[Event] = []
        self.has_ended = False
        """Whether a client has ended a run; the next tick records its end."""
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
        """Return copies of the runs, oldest first."""
        with self._lock:
            return [_copy(stored.run) for stored in self._runs.values()]

    def times(self) -> tuple[RunTimes, ...]:
        """Return the times of the `SHOWN` most recent runs, oldest first."""
        with self._lock:
            last = list(islice(reversed(self._runs.values()), SHOWN))
            return tuple(_times(stored.run) for stored in reversed(last))

    def begin(self, name: str, lease_s: float | None = None) -> Run:
        """Begin a run and return it. With `lease_s`, it ends unless its lease is renewed every `lease_s` seconds.

        Secrets in its name are replaced. Raises OSError and TooManyChangesError.
        """
        name = Redactor().text(name)
        with self._lock:
            record = {"run": secrets.token_hex(6), "begin_s": self._clock.wall_s(), "name": name}
            (run,) = self._store([record if lease_s is None else {**record, "lease_s": lease_s}])
            self._runs[run["id"]].begun_s = self._clock.monotonic_s()
            self._events.append(Event("run", f"run {name} began", run["begin_s"]))
            return run

    def mark(self, identifier: str, text: str) -> Run:
        """Add a mark with the current time to a run, and return the run.

        Secrets in its text are replaced. Raises KeyError, ValueError, OSError and TooManyChangesError.
        """
        text = Redactor().text(text)
        with self._lock:
            self._open(identifier)
            record = {"run": identifier, "mark_s": self._time_s(identifier), "text": text}
            if self._runs[identifier].bytes + size_of(line_of(record)) > MAX_RUN_BYTES:
                raise ValueError(f"the run has no room for more marks (limit {MAX_RUN_BYTES >> 20} MiB)")
            (run,) = self._store([record])
            self._events.append(Event("run", f"run {run['name']}: {text}", self._clock.wall_s()))
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
            (run,) = self._store([{"run": identifier, "end_s": self._time_s(identifier)}])
            # Events have the times of the ticks, which are those of the wall clock.
            self._events.append(Event("run", f"run {run['name']} ended", self._clock.wall_s()))
            self.has_ended = True
            return run

    def _end_expired(self) -> None:
        """End the runs whose leases have expired, in one write; the next tick tries again with those that remain."""
        now_s, end_s = self._clock.monotonic_s(), self._clock.wall_s()
        expired = [
            {"run": identifier, "end_s": stored.time_s(end_s, now_s)}
            for identifier, stored in self._runs.items()
            if stored.is_expired(now_s)
        ]
        # The disk may be full.
        with suppress(OSError):
            for run in self._store(expired[: MAX_EVENTS - len(self._events)]):
                text = f"run {run['name']} ended because its lease expired"
                self._events.append(Event("run", text, end_s))

    def _time_s(self, identifier: str) -> float:
        """Return the current time for a change to a run."""
        return self._runs[identifier].time_s(self._clock.wall_s(), self._clock.monotonic_s())

    def _open(self, identifier: str) -> Run:
        """Return the run with this ID. Raises KeyError if there is none, and ValueError if it has ended."""
        run = self._runs[identifier].run
        if run["end_s"] is not None:
            raise ValueError(f"the run {run['name']} has ended")
        return run

    def _store(self, records: Sequence[Mapping[str, Any]]) -> list[Run]:
        """Write records to the file, and only then apply them; return the changed runs.

        If the oldest runs are deleted to make room, records of these runs are omitted; the run of the first record is
        never deleted. Raises OSError and TooManyChangesError.
        """
        if not records:
            return []
        if len(self._events) + len(records) > MAX_EVENTS:
            raise TooManyChangesError(f"{MAX_EVENTS} changes are waiting for the next tick")
        lines = [(record, line_of(record)) for record in records]
        size = sum(size_of(line) for _, line in lines)
        if self._bytes + size > MAX_BYTES:
            kept = self._without_oldest(size, records[0]["run"])
            run_records.rewrite(self._path, kept)
            self._log(
                f"{self._path}: deleted {count_text(len(self._runs) - len(kept), 'old run')}"
                f" (limit {MAX_BYTES >> 20} MiB)"
            )
            self._runs, self._bytes = kept, total_size(kept)
            lines = [(record, line) for record, line in lines if "begin_s" in record or record["run"] in kept]
        run_records.append_lines(self._path, b"".join(line for _, line in lines))
        for record, line in lines:
            self._apply(record, line)
        return [_copy(self._runs[record["run"]].run) for record, _ in lines]

    def _load(self) -> None:
        """Load the runs; skip malformed lines, and shrink a file that is too large. Raises OSError."""
        malformed = 0
        with self._path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > MAX_READ_BYTES:
                file.seek(size - MAX_READ_BYTES)
            for line in run_records.lines_of(file):
                malformed += not self._load_line(line)
                if self._bytes > MAX_BYTES:
                    self._runs = self._without_oldest(0, "")
                    self._bytes = total_size(self._runs)
        if malformed:
            self._log(f"{self._path}: skipped {count_text(malformed, 'malformed line')}")
        if size > MAX_BYTES:
            self._log(f"{self._path}: larger than {MAX_BYTES >> 20} MiB; kept {count_text(len(self._runs), 'run')}")
            # If the disk is full, the file keeps its size, and the next change tries again to shrink it.
            with suppress(OSError):
                run_records.rewrite(self._path, self._runs)
                size = 0
        # Skipped lines also take up space in the file.
        self._bytes = max(self._bytes, size)

    def _load_line(self, line: bytes) -> bool:
        """Apply the record in a line; return whether the line contains one that can be applied."""
        if not line.startswith(run_records.PREFIX):
            return False
        try:
            record = json.loads(line.decode(errors="replace"))
            stored = self._runs.get(record["run"])
            if stored is not None and "mark_s" in record and stored.bytes + size_of(line) > MAX_RUN_BYTES:
                return False
            self._apply(record, line)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            return False
        return True

    def _apply(self, record: Mapping[str, Any], line: bytes) -> None:
        run_records.apply_record(self._runs, record, size_of(line), self._clock.monotonic_s())
        self._bytes += size_of(line)

    def _without_oldest(self, room: int, needed: str) -> dict[str, StoredRun]:
        """Return the runs without the oldest ones, so that `room` more bytes fit; the `needed` run is never deleted."""
        kept, size = dict(self._runs), total_size(self._runs)
        for identifier in sorted(kept, key=lambda key: kept[key].run["end_s"] is None):
            if size + room <= LEFT_BYTES:
                break
            if identifier != needed:
                size -= kept.pop(identifier).bytes
        return kept


def _times(run: Run) -> RunTimes:
    marks = tuple((mark["time_s"], mark["text"]) for mark in run["marks"][-SHOWN_MARKS:])
    return RunTimes(run["id"], run["name"], run["begin_s"], run["end_s"], marks)


def _copy(run: Run) -> Run:
    return {**run, "marks": list(run["marks"])}
