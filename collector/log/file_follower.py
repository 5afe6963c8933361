"""The lines that are added to a file, whatever is done to it meanwhile: rotated, cut, removed, written anew."""

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
# More than this unread, and it would be read long after it matters: it is skipped.
HOPELESS_BYTES = 64 << 20
# A file that was taken away may still be written to, or come back: for so long its last lines are waited for.
PATIENCE_S = 10.0
# What stands before the place read up to; when it changes, the file was written anew.
SEAL_BYTES = 64


@dataclass
class _Open:
    """A file that is being read: `position` is where the next bytes are, `seal` what stands just before."""

    descriptor: int
    identity: tuple[int, int]
    position: int = 0
    seal: bytes = b""


class FileFollower:
    """Follows the file of a name. What stands in it at first sight is not read; all that comes later is."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._file: _Open | None = None
        self._lines = LineSplitter()
        # A file that was seen to be missing is new when it comes: all of it is.
        self._from_start = False
        self._gone_since_s: float | None = None
        self._skipped_bytes = 0

    def lines(self, most_bytes: int, until_s: float) -> Iterator[bytes]:
        """Yield the lines that have been added, without their ends.

        Stops after `most_bytes`, or soon after the monotonic time `until_s`; the rest comes next time. Raises
        SourceError when there is no file that can be read, after the lines that there still were.
        """
        try:
            yield from self._added(most_bytes, until_s)
        except FileNotFoundError:
            self._from_start = True
            raise self._error("no such file; it is read as soon as there is one") from None
        except PermissionError:
            self.close()
            raise self._error("no permission; run casstat as a user who may read it") from None
        except OSError as error:
            self.close()
            raise self._error(error.strerror or "cannot be read") from None

    def take_skipped(self) -> int:
        """Return how many bytes were passed over since the last call, because there were more than can be read."""
        skipped, self._skipped_bytes = self._skipped_bytes, 0
        return skipped

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            os.close(self._file.descriptor)
            self._file = None
        self._lines.begin()
        self._gone_since_s = None

    def _added(self, most_bytes: int, until_s: float) -> Iterator[bytes]:
        left = most_bytes
        while True:
            file = self._file = self._file or self._open()
            # Looked at before the rest is read: once another file has the name, nothing is added to this one.
            succeeded = self._is_succeeded(file)
            self._notice_rewriting(file)
            while left > 0 and (chunk := self._read(file, min(left, CHUNK_BYTES))):
                left -= len(chunk)
                yield from self._lines.complete(chunk)
                if self._clock.monotonic_s() >= until_s:
                    return
            if left <= 0 or not succeeded:
                return
            self.close()
            self._from_start = True

    def _open(self) -> _Open:
        # Not to wait for somebody at the other end, should it be a pipe.
        descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            return self._at_its_place(descriptor)
        except BaseException:
            os.close(descriptor)
            raise

    def _at_its_place(self, descriptor: int) -> _Open:
        there = os.fstat(descriptor)
        if not stat.S_ISREG(there.st_mode):
            what = "is a directory" if stat.S_ISDIR(there.st_mode) else "is no regular file"
            raise self._error(f"{what}; give the log file itself")
        file = _Open(descriptor, (there.st_dev, there.st_ino))
        if not self._from_start:
            self._go_to(file, there.st_size)
        return file

    def _go_to(self, file: _Open, position: int) -> None:
        """Go on from `position`: in the middle of a line, from the next one."""
        file.position = position
        file.seal = self._sealed(file)
        self._lines.begin(in_a_line=bool(file.seal) and not file.seal.endswith(b"\n"))

    def _is_succeeded(self, file: _Open) -> bool:
        """Return whether this file is done with: another has its name, or nothing has had it for a while."""
        try:
            there = self._path.stat()
        except OSError:
            now_s = self._clock.monotonic_s()
            self._gone_since_s = now_s if self._gone_since_s is None else self._gone_since_s
            return now_s - self._gone_since_s >= PATIENCE_S
        self._gone_since_s = None
        return (there.st_dev, there.st_ino) != file.identity

    def _notice_rewriting(self, file: _Open) -> None:
        """Begin anew when the file was cut or written anew, and skip what cannot be caught up with."""
        size = os.fstat(file.descriptor).st_size
        if size < file.position or self._sealed(file) != file.seal:
            self._go_to(file, 0)
        if size - file.position > HOPELESS_BYTES:
            self._skipped_bytes += size - file.position
            self._go_to(file, size)

    def _sealed(self, file: _Open) -> bytes:
        begin = max(0, file.position - SEAL_BYTES)
        return os.pread(file.descriptor, file.position - begin, begin)

    def _read(self, file: _Open, most_bytes: int) -> bytes:
        chunk = os.pread(file.descriptor, most_bytes, file.position)
        file.position += len(chunk)
        file.seal = (file.seal + chunk[-SEAL_BYTES:])[-SEAL_BYTES:]
        return chunk

    def _error(self, reason: str) -> SourceError:
        return SourceError(f"{one_line(self._path)}: {reason}")
