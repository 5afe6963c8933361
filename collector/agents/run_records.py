"""The file in which an agent stores its runs: a line of JSON, called a record, for each change to a run."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from errno import ENOSPC
from pathlib import Path
from typing import Any, BinaryIO

from collector.file_access import replace_file

FILE = "runs.jsonl"
# Every record counts as at least this many bytes, to account for its overhead in memory.
MIN_RECORD_BYTES = 256
# Longer lines are skipped; only another program can have written them.
MAX_LINE_BYTES = 64 << 10
# The start of every record; other lines are not parsed.
PREFIX = b'{"run": '

Run = dict[str, Any]


@dataclass
class StoredRun:
    """A run and its lease.

    bytes      the total size of its records, as counted by `size_of`.
    lease_s    how long the lease lasts after each renewal; None if the run has no lease.
    renewed_s  the monotonic time of the last renewal.
    begun_s    the monotonic time at which it began; None if that was before the agent started.
    """

    run: Run
    bytes: int
    lease_s: float | None = None
    renewed_s: float = 0.0
    begun_s: float | None = None

    def time_s(self, wall_s: float, now_s: float) -> float:
        """Return the time of a change to the run, given the wall clock and the monotonic clock.

        If the wall clock has been set since the run began, the time goes on as if it had not been.
        """
        begin_s = float(self.run["begin_s"])
        return max(begin_s, wall_s) if self.begun_s is None else begin_s + now_s - self.begun_s

    def is_expired(self, now_s: float) -> bool:
        """Return whether the run is active even though its lease has expired."""
        return self.lease_s is not None and self.run["end_s"] is None and now_s - self.renewed_s > self.lease_s


def apply_record(runs: dict[str, StoredRun], record: Mapping[str, Any], size: int, now_s: float) -> None:
    """Apply a record of `size` bytes to the runs; `now_s` is the monotonic time.

    Raises ValueError, TypeError or KeyError, without any change, if the record is malformed or belongs to no run.
    """
    identifier = str(record["run"])
    if "begin_s" in record:
        begun = {"id": identifier, "name": str(record["name"]), "begin_s": float(record["begin_s"])}
        lease_s = None if record.get("lease_s") is None else float(record["lease_s"])
        # When the agent restarts, the lease starts again in full.
        runs[identifier] = StoredRun({**begun, "end_s": None, "marks": []}, 0, lease_s, now_s)
    elif "end_s" in record:
        runs[identifier].run["end_s"] = float(record["end_s"])
    else:
        mark = {"time_s": float(record["mark_s"]), "text": str(record["text"])}
        runs[identifier].run["marks"].append(mark)
    runs[identifier].bytes += size


def line_of(record: Mapping[str, Any]) -> bytes:
    """Return a record as a line of the file; lone surrogates become question marks."""
    return json.dumps(record, ensure_ascii=False).encode(errors="replace") + b"\n"


def size_of(line: bytes) -> int:
    """Return the size that a record counts as: that of its line, but at least MIN_RECORD_BYTES."""
    return max(len(line), MIN_RECORD_BYTES)


def total_size(runs: Mapping[str, StoredRun]) -> int:
    """Return the size that the records of all runs count as, in bytes."""
    return sum(stored.bytes for stored in runs.values())


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """Yield the remaining lines of a file; if a line is too long, yield only its end. Raises OSError."""
    while line := file.readline(MAX_LINE_BYTES):
        if line.endswith(b"\n") or len(line) < MAX_LINE_BYTES:
            yield line


def append_lines(path: Path, lines: bytes) -> None:
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


def rewrite(path: Path, runs: Mapping[str, StoredRun]) -> None:
    """Replace the file with one that contains only the records of these runs. Raises OSError."""
    replace_file(path, b"".join(line_of(record) for stored in runs.values() for record in _records(stored)))


def _records(stored: StoredRun) -> Iterator[Mapping[str, Any]]:
    """Yield the records from which a run can be restored."""
    run, lease = stored.run, {} if stored.lease_s is None else {"lease_s": stored.lease_s}
    yield {"run": run["id"], "begin_s": run["begin_s"], "name": run["name"], **lease}
    for mark in run["marks"]:
        yield {"run": run["id"], "mark_s": mark["time_s"], "text": mark["text"]}
    if run["end_s"] is not None:
        yield {"run": run["id"], "end_s": run["end_s"]}
