"""Follows the lines appended to a file, even if it is rotated, truncated, removed or rewritten."""

from collections.abc import Iterator
from pathlib import Path

from collector.growing_file import GrowingFile, NotRegularError
from collector.model.clock import Clock
from collector.model.snapshot import SourceError
from collector.node.log.line_splitter import LineSplitter
from collector.printable import one_line

CHUNK_BYTES = 256 << 10
# A larger backlog is skipped, because its events would be shown long after they happened.
MAX_BACKLOG_BYTES = 64 << 20
# A removed file is kept open for REMOVED_GRACE_S, because it may still be written to or may reappear.
REMOVED_GRACE_S = 10.0


class FileFollower:
    """Follows the file at a path, from its current end; a file that appears later is read from its beginning."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._file: GrowingFile | None = None
        self._lines = LineSplitter()
        # Whether to read the next file from its start, because it was missing before or has replaced another one.
        self._from_start = False
        self._removed_since_s: float | None = None
        self._skipped_bytes = 0
        self.file_number = 0
        """The number of files opened so far, those that were rewritten included."""

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
            self._file.close()
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
            while remaining > 0 and (chunk := file.read(min(remaining, CHUNK_BYTES))):
                remaining -= len(chunk)
                yield from self._lines.complete(chunk)
                if self._clock.monotonic_s() >= until_s:
                    return
            if remaining <= 0 or not is_replaced:
                return
            self.close()
            self._from_start = True

    def _open(self) -> GrowingFile:
        try:
            file = GrowingFile(self._path)
        except NotRegularError as error:
            raise self._error(f"{error} (hint: specify the log file)") from None
        self.file_number += 1
        if not self._from_start:
            try:
                self._seek(file, file.size())
            except BaseException:
                file.close()
                raise
        return file

    def _seek(self, file: GrowingFile, position: int) -> None:
        """Continue at `position`; if a line began before it, skip the rest of that line."""
        file.seek(position)
        self._lines.reset(skip_line=bool(file.seal) and not file.seal.endswith(b"\n"))

    def _is_replaced(self, file: GrowingFile) -> bool:
        """Return whether the path now refers to another file, or there has been no file for the whole grace period."""
        try:
            is_replaced = file.is_replaced()
        except OSError:
            now_s = self._clock.monotonic_s()
            self._removed_since_s = now_s if self._removed_since_s is None else self._removed_since_s
            return now_s - self._removed_since_s >= REMOVED_GRACE_S
        self._removed_since_s = None
        return is_replaced

    def _check_rewritten(self, file: GrowingFile) -> None:
        """Start over if the file was truncated or rewritten, and skip a backlog that is too large."""
        if file.is_rewritten():
            self.file_number += 1
            self._seek(file, 0)
        size = file.size()
        if size - file.position > MAX_BACKLOG_BYTES:
            self._skipped_bytes += size - file.position
            self._seek(file, size)

    def _error(self, reason: str) -> SourceError:
        return SourceError(f"{one_line(self._path)}: {reason}")
