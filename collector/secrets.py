"""Passwords from files: never from a command line, which everybody on the machine can read."""

import os
import stat
from pathlib import Path

LARGEST_BYTES = 4096
OTHERS = stat.S_IRWXG | stat.S_IRWXO


class SecretError(ValueError):
    """A file holds no usable password; the message says why and what to do, in one line, and never the password."""


def read_password(path: Path) -> str:
    """Return the first line of the file at `path`. Raises SecretError."""
    try:
        # Opening a pipe would wait for somebody to write into it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise SecretError(f"{path}: {getattr(error, 'strerror', None) or 'is no path'}") from None
    # What is judged is what is read, whatever becomes of the path meanwhile.
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise SecretError(f"{path}: is no plain file")
        if state.st_mode & OTHERS:
            raise SecretError(f"{path}: can be read by others: chmod 600 {path}")
        if state.st_size > LARGEST_BYTES:
            raise SecretError(f"{path}: is too large for a password in its first line")
        first = os.read(descriptor, LARGEST_BYTES).split(b"\n")[0].rstrip(b"\r")
    except OSError as error:
        raise SecretError(f"{path}: {error.strerror}") from None
    finally:
        os.close(descriptor)
    try:
        password = first.decode()
    except UnicodeDecodeError:
        raise SecretError(f"{path}: its first line is no UTF-8 text") from None
    if not password:
        raise SecretError(f"{path}: its first line is empty: it must be the password")
    return password


def is_read_by_others(path: Path) -> bool:
    """Return whether others than its owner may use the file; not when it cannot be looked at."""
    try:
        return bool(path.stat().st_mode & OTHERS)
    except OSError:
        return False
