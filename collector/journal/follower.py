"""A journal followed while it is written: each byte is read once, and nothing is read when nothing has come."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from collector.journal.reader import CHUNK_BYTES, Entry, Reader
from collector.journal.tick_order import Finding, TickOrder
from collector.journal.writer import Position, files_of, order


@dataclass(frozen=True)
class Removed:
    """Between what was read before and what comes next, files may be missing: the oldest are removed for room."""


class JournalFollower:
    """Follows a node's folder from its oldest file to its newest, and the newest as it grows."""

    def __init__(self, folder: Path, start: Position | None = None) -> None:
        """Take the folder, and where to begin: at the oldest file, or at a position that was reached before."""
        self._folder = folder
        self._start = start
        self._path: Path | None = None
        self._file: BinaryIO | None = None
        self._reader = Reader()
        self._sequence = TickOrder(resumed=start is not None)
        self.read_bytes = 0

    def position(self, entry: Entry) -> Position:
        """Return where the frame begins of the entry that came last."""
        return Position(self._path.name if self._path else "", entry.frame)

    def poll(self) -> Iterator[Entry | Finding | Removed]:
        """Yield what has come since the last call. Raises OSError."""
        if self._start is not None:
            start, self._start = self._start, None
            if not self._begin(start):
                yield Removed()
        while True:
            yield from self._more()
            # Only a file that has a successor is whole; what came to it meanwhile is read first.
            following = next(
                (path for path in files_of(self._folder) if self._path is None or order(path) > order(self._path)), None
            )
            if following is None:
                return
            yield from self._more()
            # The oldest go first: while this one is there, so are those behind it.
            gone = self._file is not None and not os.fstat(self._file.fileno()).st_nlink
            if self._file is not None:
                yield from self._sequence.filtered(self._reader.end())
                self.close()
            if gone:
                yield Removed()
            self._file, self._path, self._reader = following.open("rb"), following, Reader()

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _begin(self, start: Position) -> bool:
        """Go to where to begin; return whether it is there."""
        self._path = self._folder / start.file
        with suppress(FileNotFoundError):
            file = self._path.open("rb")
            if os.fstat(file.fileno()).st_size >= start.offset:
                file.seek(start.offset)
                self._file, self._reader = file, Reader(start.offset)
                return True
            file.close()
        return False

    def _more(self) -> Iterator[Entry | Finding]:
        while self._file is not None and (data := self._file.read(CHUNK_BYTES)):
            self.read_bytes += len(data)
            yield from self._sequence.filtered(self._reader.feed(data))
