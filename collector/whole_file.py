"""Reads whole files up to a maximum size."""

import os
from pathlib import Path

MAX_BYTES = 64 << 20


class UnsuitableFileError(ValueError):
    """A file is a named pipe, or larger than allowed; the message says which."""


def read_whole(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Return a file's content. Raises UnsuitableFileError and OSError."""
    if path.is_fifo():
        # Opening it would wait for a writer.
        raise UnsuitableFileError("a named pipe")
    with path.open("rb") as file:
        size_bytes = os.fstat(file.fileno()).st_size
        if size_bytes > max_bytes:
            raise UnsuitableFileError(f"larger than {max_bytes >> 20} MiB")
        # `read` allocates as much memory as it is asked to read, even if the file is small.
        return file.read(size_bytes)
