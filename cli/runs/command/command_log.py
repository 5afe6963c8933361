"""Writes a copy of a command's output to a file."""

from pathlib import Path
from typing import BinaryIO

from cli.errors import note

LOG_FILE = "command.log"


class CommandLog:
    """The file with the command's output. If it cannot be written, the command continues."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._error = ""

    def __enter__(self) -> "CommandLog":
        try:
            self._file = self._path.open("wb")
        except OSError as error:
            self._error = str(error.strerror)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self._error = self._error or str(error.strerror)
        if self._error:
            note(f"{self._path}: the command's output is incomplete: {self._error}")

    def write(self, data: bytes) -> None:
        """Append output at once, so that the file's time is that of the last output; nothing after the first error."""
        if self._file is None or self._error:
            return
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            self._error = str(error.strerror)
