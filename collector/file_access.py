"""Atomic replacement of files, and reading of whole files, growing files, lines and passwords.

Passwords are read from files, because every user of the machine can see command lines.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from collector.printable import indented_json, one_line

# The length to which `LineSplitter` cuts lines.
MAX_LINE_BYTES = 256 << 10
MAX_BYTES = 64 << 20
# The number of bytes before the reading position that a growing file remembers; if they change, it has been rewritten.
SEAL_BYTES = 64
MAX_PASSWORD_BYTES = 4096
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@contextmanager
def file_errors(path: object, error_of: Callable[[str], Exception]) -> Iterator[None]:
    """Turn an OSError into another exception; its one-line message names the error's file or, if unknown, `path`."""
    try:
        yield
    except OSError as error:
        raise error_of(f"{error.filename or path}: {one_line(error.strerror or error)}") from None


def write_json(path: Path, content: Any) -> None:
    """Write content to a file as indented JSON. Raises OSError; the previous file then remains unchanged."""
    replace_file(path, indented_json(content).encode())


def replace_file(path: Path, content: bytes) -> None:
    """Atomically replace a file's content, creating its directory if needed. On OSError, the file remains unchanged."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise


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
        with file_errors(path, SecretError):
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode):
                raise SecretError(f"{path}: not a regular file")
            if state.st_mode & _OTHERS:
                raise SecretError(f"{path}: accessible to other users (hint: run 'chmod 600 {path}')")
            if state.st_size > MAX_PASSWORD_BYTES:
                hint = "store only the password in it"
                raise SecretError(f"{path}: larger than {MAX_PASSWORD_BYTES} bytes (hint: {hint})")
            first = os.read(descriptor, MAX_PASSWORD_BYTES).split(b"\n")[0].rstrip(b"\r")
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
        return bool(path.stat().st_mode & _OTHERS)
    except OSError:
        return False


class LineSplitter:
    """Splits chunks into lines. Lines longer than `max_bytes` are truncated."""

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._partial = b""
        self._skipping = False

    def reset(self, *, skip_line: bool = False) -> None:
        """Discard the partial line; if `skip_line`, also skip the input up to the next line end."""
        self._partial = b""
        self._skipping = skip_line

    def complete(self, chunk: bytes) -> Iterator[bytes]:
        r"""Yield the lines that `chunk` completes, without their ends (`\n` or `\r\n`)."""
        *complete, partial = chunk.split(b"\n")
        for part in complete:
            line, is_skipped = self._partial + part, self._skipping
            self.reset()
            if not is_skipped:
                yield self._truncated(line)
        if not self._skipping:
            self._partial += partial
        if len(self._partial) > self._max_bytes:
            truncated = self._truncated(self._partial)
            self.reset(skip_line=True)
            yield truncated

    def _truncated(self, line: bytes) -> bytes:
        return line[: self._max_bytes].removesuffix(b"\r")
