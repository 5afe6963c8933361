"""Reads whole files up to a maximum size."""

import os
from pathlib import Path


class TooLargeError(ValueError):
    """A file is larger than allowed; the message states the limit."""


def read_whole(path: Path, max_bytes: int) -> bytes:
    """Return a file's content. Raises TooLargeError and OSError."""
    with path.open("rb") as file:
        size_bytes = os.fstat(file.fileno()).st_size
        if size_bytes > max_bytes:
            raise TooLargeError(f"larger than {max_bytes >> 20} MiB")
        # `read` allocates as much memory as it is asked to read, even if the file is small.
        return file.read(size_bytes)
