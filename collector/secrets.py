"""Reads passwords from files, because every user of the machine can see command lines."""

import os
import stat
from pathlib import Path

MAX_BYTES = 4096
OTHERS = stat.S_IRWXG | stat.S_IRWXO


class SecretError(ValueError):
    """Raised if a password file cannot be used. The message is one line and never contains the password."""


def read_password(path: Path) -> str:
    """Return the first line of the file at `path`. Raises SecretError."""
    try:
        # Without O_NONBLOCK, opening a named pipe would block until a writer opens it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise SecretError(f"{path}: {getattr(error, 'strerror', None) or 'invalid path'}") from None
    # Check the open file rather than the path: the file at the path could be replaced in the meantime.
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise SecretError(f"{path}: not a regular file")
        if state.st_mode & OTHERS:
            raise SecretError(f"{path}: accessible to other users (hint: run 'chmod 600 {path}')")
        if state.st_size > MAX_BYTES:
            raise SecretError(f"{path}: larger than {MAX_BYTES} bytes (hint: store only the password in it)")
        first = os.read(descriptor, MAX_BYTES).split(b"\n")[0].rstrip(b"\r")
    except OSError as error:
        raise SecretError(f"{path}: {error.strerror}") from None
    finally:
        os.close(descriptor)
    try:
        password = first.decode()
    except UnicodeDecodeError:
        raise SecretError(f"{path}: the first line is not UTF-8 text") from None
    if not password:
        raise SecretError(f"{path}: the first line is empty (hint: put the password there)")
    return password


def is_read_by_others(path: Path) -> bool:
    """Return whether users other than the owner may access the file; False if that cannot be checked."""
    try:
        return bool(path.stat().st_mode & OTHERS)
    except OSError:
        return False
