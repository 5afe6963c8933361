"""Writes a copy of a command's output, without secrets, to a file."""

from collections.abc import Hashable
from pathlib import Path
from typing import BinaryIO

from cli.errors import note
from collector.redaction.redactor import RedactedStream, Redactor

LOG_FILE = "command.log"


class CommandLog:
    """The file with the command's output. If it cannot be written, the command continues.

    Only complete lines are written, because the parts of a secret may arrive one after the other.
    """

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self._path = path
        self._redactor = redactor
        self._streams: dict[Hashable, RedactedStream] = {}
        self._file: BinaryIO | None = None
        self._error = ""

    def __enter__(self) -> "CommandLog":
        try:
            self._file = self._path.open("wb")
        except OSError as error:
            self._error = str(error.strerror)
        return self

    def __exit__(self, *_: object) -> None:
        for stream in self._streams.values():
            self._append(stream.end())
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self._error = self._error or str(error.strerror)
        if self._error:
            note(f"{self._path}: the command's output is incomplete: {self._error}")

    def write(self, data: bytes, stream: Hashable = 1) -> None:
        """Append the lines that are complete at once, so that the file's time is that of the last output.

        Lines of different streams are not mixed. After the first error, nothing is written.
        """
        self._append(self._streams.setdefault(stream, RedactedStream(self._redactor)).add(data))

    def _append(self, data: bytes) -> None:
        if self._file is None or self._error or not data:
            return
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            self._error = str(error.strerror)
