"""A journal followed while it is written: each byte is read once, and nothing is read when nothing has come."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from collector.journal.frames import Damage
from collector.journal.reading import CHUNK_BYTES, Entry, Reader
from collector.journal.writing import files_of


class Tail:
    """Follows a node's folder from its oldest file to its newest, and the newest as it grows."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path: Path | None = None
        self._file: BinaryIO | None = None
        self._reader = Reader()
        self.read_bytes = 0

    def poll(self) -> Iterator[Entry | Damage]:
        """Yield what has come since the last call. Raises OSError."""
        while True:
            yield from self._more()
            # Only a file that has a successor is whole; what came to it meanwhile is read first.
            following = next((path for path in files_of(self._folder) if self._path is None or path > self._path), None)
            if following is None:
                return
            yield from self._more()
            if self._file is not None:
                yield from self._reader.end()
                self._file.close()
            self._path, self._file, self._reader = following, following.open("rb"), Reader()

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _more(self) -> Iterator[Entry | Damage]:
        while self._file is not None and (data := self._file.read(CHUNK_BYTES)):
            self.read_bytes += len(data)
            yield from self._reader.feed(data)
