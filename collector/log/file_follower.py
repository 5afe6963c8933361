"""Follows the lines appended to a file, even if it is rotated, truncated, removed or rewritten."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from collector.log.line_splitter import LineSplitter
from collector.model.clock import Clock
from collector.model.snapshot import SourceError
from collector.printable import one_line

CHUNK_BYTES = 256 << 10
# A larger backlog is skipped, because its events would be shown long after they happened.
MAX_BACKLOG_BYTES = 64 << 20
# A removed file is kept open for REMOVED_GRACE_S, because it may still be written to or may reappear.
REMOVED_GRACE_S = 10.0
# The number of bytes just before the reading position that are remembered. If they change, the file has been rewritten.
SEAL_BYTES = 64


@dataclass
class _Open:
    """An open file: `position` is the offset of the next bytes, and `seal` contains the bytes just before it."""

    descriptor: int
    identity: tuple[int, int]
    position: int = 0
    seal: bytes = b""


class FileFollower:
    """Follows the file at a path, from its current end; a file that appears later is read from its beginning."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._file: _Open | None = None
        self._lines = LineSplitter()
        # Whether to read the next file from its start, because it was missing before or has replaced another one.
        self._from_start = False
        self._removed_since_s: float | None = None
        self._skipped_bytes = 0

    def lines(self, most_bytes: int, until_s: float) -> Iterator[bytes]:
        """Yield the lines appended since the last call, without newlines.

        Stops after `most_bytes`, or soon after the monotonic time `until_s`; the next call continues from there. If
        the file cannot be read, yields the lines read so far and raises SourceError.
        """
        try:
            yield from self._added(most_bytes, until_s)
        except FileNotFoundError:
            self._from_start = True
            raise self._error("no such file yet") from None
        except PermissionError:
            self.close()
            raise self._error("permission denied (hint: run casstat as a user who can read it)") from None
        except OSError as error:
            self.close()
            raise self._error(error.strerror or "cannot be read") from None

    def take_skipped(self) -> int:
        """Return the number of bytes skipped since the last call because the backlog was too large."""
        skipped, self._skipped_bytes = self._skipped_bytes, 0
        return skipped

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file.descriptor)
            self._file = None
        self._lines.reset()
        self._removed_since_s = None

    def _added(self, most_bytes: int, until_s: float) -> Iterator[bytes]:
        remaining = most_bytes
        while True:
            file = self._file = self._file or self._open()
            # Check for a replacement before reading, so that lines appended before it are not lost.
            is_replaced = self._is_replaced(file)
            self._check_rewritten(file)
            while remaining > 0 and (chunk := self._read(file, min(remaining, CHUNK_BYTES))):
                remaining -= len(chunk)
                yield from self._lines.complete(chunk)
                if self._clock.monotonic_s() >= until_s:
                    return
            if remaining <= 0 or not is_replaced:
                return
            self.close()
            self._from_start = True

    def _open(self) -> _Open:
        # Without O_NONBLOCK, opening a pipe would block.
        descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            return self._positioned(descriptor)
        except BaseException:
            os.close(descriptor)
            raise

    def _positioned(self, descriptor: int) -> _Open:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            kind = "is a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise self._error(f"{kind} (hint: specify the log file)")
        file = _Open(descriptor, (status.st_dev, status.st_ino))
        if not self._from_start:
            self._seek(file, status.st_size)
        return file

    def _seek(self, file: _Open, position: int) -> None:
        """Continue at `position`; if a line began before it, skip the rest of that line."""
        file.position = position
        file.seal = self._read_seal(file)
        self._lines.reset(skip_line=bool(file.seal) and not file.seal.endswith(b"\n"))

    def _is_replaced(self, file: _Open) -> bool:
        """Return whether the path now refers to another file, or there has been no file for the whole grace period."""
        try:
            status = self._path.stat()
        except OSError:
            now_s = self._clock.monotonic_s()
            self._removed_since_s = now_s if self._removed_since_s is None else self._removed_since_s
            return now_s - self._removed_since_s >= REMOVED_GRACE_S
        self._removed_since_s = None
        return (status.st_dev, status.st_ino) != file.identity

    def _check_rewritten(self, file: _Open) -> None:
        """Start over if the file was truncated or rewritten, and skip a backlog that is too large."""
        size = os.fstat(file.descriptor).st_size
        if size < file.position or self._read_seal(file) != file.seal:
            self._seek(file, 0)
        if size - file.position > MAX_BACKLOG_BYTES:
            self._skipped_bytes += size - file.position
            self._seek(file, size)

    def _read_seal(self, file: _Open) -> bytes:
        begin = max(0, file.position - SEAL_BYTES)
        return os.pread(file.descriptor, file.position - begin, begin)

    def _read(self, file: _Open, most_bytes: int) -> bytes:
        chunk = os.pread(file.descriptor, most_bytes, file.position)
        file.position += len(chunk)
        file.seal = (file.seal + chunk[-SEAL_BYTES:])[-SEAL_BYTES:]
        return chunk

    def _error(self, reason: str) -> SourceError:
        return SourceError(f"{one_line(self._path)}: {reason}")
