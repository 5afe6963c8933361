"""A lock on a file, which the kernel releases when the process ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cli.errors import CasstatError


@contextmanager
def try_lock(file: Path, *, creating: bool = False) -> Iterator[bool]:
    """Try to lock a file, which must exist unless `creating`, and yield whether it was not locked.

    Raises CasstatError.
    """
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        lock = os.open(file, flags | os.O_CREAT if creating else flags, 0o644)
    except OSError as error:
        raise CasstatError(f"{error.filename}: {error.strerror}") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(lock)
