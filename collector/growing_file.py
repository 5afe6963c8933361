"""Reads what is appended to a file, and recognises that the file was replaced, truncated or rewritten."""

import os
import stat
from pathlib import Path

# The number of bytes before the reading position that are remembered; if they change, the file has been rewritten.
SEAL_BYTES = 64


class NotRegularError(Exception):
    """A path does not refer to a regular file; the message states what it is."""


class GrowingFile:
    """An open regular file: `position` is the offset of the next bytes, `seal` contains the bytes just before it."""

    def __init__(self, path: Path) -> None:
        """Open a file at its beginning. Raises NotRegularError and OSError."""
        self.path = path
        self.position = 0
        self.seal = b""
        # Without O_NONBLOCK, opening a pipe would block.
        self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise NotRegularError("is a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file")
        self._identity = status.st_dev, status.st_ino

    def close(self) -> None:
        os.close(self._descriptor)

    def size(self) -> int:
        """Return the file's size in bytes. Raises OSError."""
        return os.fstat(self._descriptor).st_size

    def is_replaced(self) -> bool:
        """Return whether the path now refers to another file. Raises OSError if it refers to none."""
        status = self.path.stat()
        return (status.st_dev, status.st_ino) != self._identity

    def is_rewritten(self) -> bool:
        """Return whether the file was truncated, or what has been read was changed. Raises OSError."""
        return self.size() < self.position or self._sealed() != self.seal

    def seek(self, position: int) -> None:
        """Continue at a position. Raises OSError."""
        self.position = position
        self.seal = self._sealed()

    def head(self, max_bytes: int) -> bytes:
        """Return the file's first bytes, regardless of the position. Raises OSError."""
        return os.pread(self._descriptor, max_bytes, 0)

    def read(self, max_bytes: int) -> bytes:
        """Return the next bytes; b"" at the current end of the file. Raises OSError."""
        chunk = os.pread(self._descriptor, max_bytes, self.position)
        self.position += len(chunk)
        self.seal = (self.seal + chunk[-SEAL_BYTES:])[-SEAL_BYTES:]
        return chunk

    def _sealed(self) -> bytes:
        begin = max(0, self.position - SEAL_BYTES)
        return os.pread(self._descriptor, self.position - begin, begin)
