"""Follows a journal while it is being written; each byte is read once."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from collector.recording.reader import CHUNK_BYTES, Entry, Reader
from collector.recording.tick_order import Finding, TickOrder
from collector.recording.writer import Position, files_of, sort_key


@dataclass(frozen=True)
class Removed:
    """Yielded where files may be missing because the recorder has removed them to stay within its size limit."""


class JournalFollower:
    """Follows a node's directory from its oldest file to its newest, which may still be growing."""

    def __init__(self, folder: Path, start: Position | None = None) -> None:
        """Begin at `start`, a position returned by an earlier follower; if it is None, begin at the oldest file."""
        self._folder = folder
        self._start = start
        self._path: Path | None = None
        self._file: BinaryIO | None = None
        self._reader = Reader()
        self._order = TickOrder(resumed=start is not None)
        self.read_bytes = 0

    def position(self, entry: Entry) -> Position:
        """Return the position of the frame that contains `entry`, which must be the last entry yielded."""
        return Position(self._path.name if self._path else "", entry.frame)

    def poll(self) -> Iterator[Entry | Finding | Removed]:
        """Yield the ticks since the last call, any findings, and `Removed` if files may be missing. Raises OSError."""
        if self._start is not None:
            start, self._start = self._start, None
            if not self._open_at(start):
                yield Removed()
        while True:
            yield from self._read_more()
            # Nothing more is appended to a file once the next one exists, so read the rest, then move on.
            following = next(
                (
                    path
                    for path in files_of(self._folder)
                    if self._path is None or sort_key(path) > sort_key(self._path)
                ),
                None,
            )
            if following is None:
                return
            yield from self._read_more()
            # The oldest file is always removed first, so as long as this file exists, no later one is missing.
            was_removed = self._file is not None and not os.fstat(self._file.fileno()).st_nlink
            if self._file is not None:
                yield from self._order.filtered(self._reader.end())
                self.close()
            if was_removed:
                yield Removed()
            self._file, self._path, self._reader = following.open("rb"), following, Reader()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open_at(self, start: Position) -> bool:
        """Open the file at the position; return False if the file is missing or too short."""
        self._path = self._folder / start.file
        with suppress(FileNotFoundError):
            file = self._path.open("rb")
            if os.fstat(file.fileno()).st_size >= start.offset:
                file.seek(start.offset)
                self._file, self._reader = file, Reader(start.offset)
                return True
            file.close()
        return False

    def _read_more(self) -> Iterator[Entry | Finding]:
        while self._file is not None and (data := self._file.read(CHUNK_BYTES)):
            self.read_bytes += len(data)
            yield from self._order.filtered(self._reader.feed(data))
