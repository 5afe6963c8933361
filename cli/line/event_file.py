"""The file that events are appended to: trouble with it never stops the program, and nothing is lost in silence."""

import contextlib
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from cli.errors import CasstatError
from collector.printable import one_line

MODE = 0o666


class EventFile:
    """A file of lines. What cannot be written, as on a full disk, is counted, and said when it begins and ends."""

    def __init__(self, path: Path, say: Callable[[str], None]) -> None:
        """Open the file for appending; `say` tells people. Raises CasstatError when it cannot be written to."""
        self._name = one_line(path)
        self._say = say
        self._lost = 0
        self._failing = False
        try:
            self._descriptor: int | None = _opened(path)
        except OSError as error:
            raise CasstatError(f"{self._name}: {error.strerror}: no events can be written there") from None
        # The rest of a line that was begun. The next line does not begin before that is written.
        self._owed = _missing_end(self._descriptor)

    def append(self, lines: Sequence[str]) -> None:
        """Write lines, given without their ends, at once. What cannot be written is lost, and counted."""
        if self._descriptor is None or not lines:
            return
        encoded = [f"{line}\n".encode(errors="replace") for line in lines]
        written, reason = self._write(self._descriptor, self._still_owed(self._descriptor), encoded)
        if reason:
            self._lost += self._lost_of(encoded, written)
            if not self._failing:
                self._say(f"{self._name}: {reason}: events are lost until it can be written to again")
        elif self._failing:
            self._say(f"{self._name}: can be written to again; {self._lost} events were lost")
            self._lost = 0
        self._failing = bool(reason)

    def close(self) -> None:
        """Let go of the file; say how many events were lost at the end."""
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError):
            os.close(self._descriptor)
        self._descriptor = None
        if self._lost:
            self._say(f"{self._name}: {self._lost} events were lost")

    def _still_owed(self, descriptor: int) -> bytes:
        """Return the rest of the line that was begun, unless the file was emptied since, as to make room."""
        there = os.fstat(descriptor)
        if stat.S_ISREG(there.st_mode) and not there.st_size:
            self._owed = b""
        return self._owed

    def _write(self, descriptor: int, owed: bytes, encoded: list[bytes]) -> tuple[int, str]:
        """Return how many bytes of the lines were written, less than none when what was owed was not; and why."""
        rest = memoryview(owed + b"".join(encoded))
        whole = len(rest)
        try:
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        except OSError as error:
            written = whole - len(rest) - len(owed)
            self._owed = owed[written:] if written < 0 else b""
            return written, error.strerror or "cannot be written to"
        self._owed = b""
        return whole - len(owed), ""

    def _lost_of(self, encoded: list[bytes], written: int) -> int:
        """Return how many lines were not even begun; what is missing of one that was is owed."""
        for place, line in enumerate(encoded):
            if written <= 0:
                return len(encoded) - place
            if written < len(line):
                self._owed = line[written:]
            written -= len(line)
        return 0


def _opened(path: Path) -> int:
    """Return a descriptor to append to, never waiting for another program. Raises OSError."""
    flags = os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        # To read as well: how the file ends is to be seen.
        descriptor = os.open(path, flags | os.O_RDWR, MODE)
    except PermissionError:
        descriptor = os.open(path, flags | os.O_WRONLY, MODE)
    mode = os.fstat(descriptor).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISCHR(mode)):
        os.close(descriptor)
        raise OSError(0, "is neither a file nor a terminal")
    return descriptor


def _missing_end(descriptor: int) -> bytes:
    """Return the end of line that the file lacks: whoever wrote to it before may have been stopped in a line."""
    there = os.fstat(descriptor)
    if not stat.S_ISREG(there.st_mode) or not there.st_size:
        return b""
    with contextlib.suppress(OSError):
        return b"" if os.pread(descriptor, 1, there.st_size - 1) == b"\n" else b"\n"
    return b""
