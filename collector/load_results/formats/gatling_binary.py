"""Gatling's `simulation.log` in binary form, which versions from 3.13 on write.

Numbers are big-endian. A text is its length in bytes, the bytes, and how they encode characters: 0 for Latin-1, 1 for
UTF-16; an empty text is only its length. In the records after the header, a text is preceded by its number, and occurs
later as its negative number alone. Times are milliseconds since the run began, which the header states.
"""

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from collector.load_results.client_format import ClientFormatError, CommandTimes, Format, Options, ResultClock
from collector.load_results.client_result import ClientResult
from collector.load_results.gatling_requests import GatlingRequests
from collector.load_results.parsing.labels import label_of
from collector.printable import one_line

NAME = "gatling-binary"
RUN, REQUEST, USER, GROUP, ERROR = range(5)
MAX_TEXT_BYTES = 1 << 20
MAX_TEXTS_BYTES = 256 << 20
MAX_TEXTS = 1_000_000
MAX_GROUPS = 1000
ENCODINGS = {0: "latin-1", 1: "utf-16-le"}
_SIGN = re.compile(r"\A\x00\x00\x00\x00[\x03-\x1f]\d+\.\d+")
_NOT_A_LOG = "not a binary log of Gatling (hint: the supported versions are 3.13 and 3.14)"


def read(path: Path, _times: CommandTimes, _options: Options) -> ClientResult:
    with path.open("rb") as file:
        log = _Log(file)
        notes = []
        try:
            log.read_header()
            log.read_records()
        except EOFError:
            notes.append("the last record is incomplete and is ignored")
        except (ValueError, struct.error) as error:
            raise ClientFormatError(f"at byte {file.tell()}: {one_line(error)}") from None
    return log.requests.result(NAME, log.tool, path.name, 1, notes)


FORMATS = (Format(NAME, _SIGN, read, clock=ResultClock.STEADY),)


class _Log:
    """Reads a log from a file. All functions raise ValueError for malformed content, and EOFError at its end."""

    def __init__(self, file: BinaryIO) -> None:
        self.requests = GatlingRequests()
        self.tool = "Gatling"
        self._file = file
        self._begin_ms = 0
        self._texts: dict[int, str] = {}
        self._texts_bytes = 0

    def read_header(self) -> None:
        if self._byte() != RUN:
            raise ValueError(_NOT_A_LOG)
        self.tool = f"Gatling {label_of(self._text())}"
        self._text()  # The simulation's class.
        self._begin_ms = self._number(">q", 8)
        self._text()  # The run's description.
        for _ in range(self._count()):
            self._text()  # A scenario.
        for _ in range(self._count()):
            self._bytes(self._length())  # An assertion.

    def read_records(self) -> None:
        """Read records until the end of the file."""
        readers: dict[int, Callable[[], None]] = {
            REQUEST: self._read_request,
            USER: self._read_user,
            GROUP: self._read_group,
            ERROR: self._read_error,
        }
        while kind := self._file.read(1):
            if kind[0] not in readers:
                raise ValueError(_NOT_A_LOG)
            readers[kind[0]]()

    def _read_request(self) -> None:
        groups = self._groups()
        name, begin_ms, end_ms = self._cached_text(), self._int(), self._int()
        has_succeeded, message = self._flag(), self._cached_text()
        reason = None if has_succeeded else message
        self.requests.add(groups, name, self._begin_ms + begin_ms, self._begin_ms + end_ms, reason)

    def _read_user(self) -> None:
        self._int()  # The scenario.
        self._flag()  # Whether the user starts.
        self._int()

    def _read_group(self) -> None:
        self._groups()
        for _ in range(3):
            self._int()  # The begin, the end and the cumulated response time.
        self._flag()

    def _read_error(self) -> None:
        self._cached_text()
        self._int()
        self.requests.errors += 1

    def _groups(self) -> list[str]:
        return [self._cached_text() for _ in range(self._count())]

    def _cached_text(self) -> str:
        number = self._int()
        if number > 0:
            text = self._texts[number] = self._text()
            self._texts_bytes += len(text)
            if self._texts_bytes > MAX_TEXTS_BYTES or len(self._texts) > MAX_TEXTS:
                raise ValueError("too many different names and messages")
            return text
        if -number not in self._texts:
            raise ValueError(_NOT_A_LOG)
        return self._texts[-number]

    def _text(self) -> str:
        length = self._length()
        if not length:
            return ""
        content, encoding = self._bytes(length), self._byte()
        if encoding not in ENCODINGS:
            raise ValueError(_NOT_A_LOG)
        return content.decode(ENCODINGS[encoding], errors="replace")

    def _count(self) -> int:
        count = self._int()
        if not 0 <= count <= MAX_GROUPS:
            raise ValueError(_NOT_A_LOG)
        return count

    def _length(self) -> int:
        length = self._int()
        if not 0 <= length <= MAX_TEXT_BYTES:
            raise ValueError(_NOT_A_LOG)
        return length

    def _flag(self) -> bool:
        value = self._byte()
        if value > 1:
            raise ValueError(_NOT_A_LOG)
        return bool(value)

    def _int(self) -> int:
        return self._number(">i", 4)

    def _byte(self) -> int:
        return self._bytes(1)[0]

    def _number(self, layout: str, length: int) -> int:
        (number,) = struct.unpack(layout, self._bytes(length))
        return int(number)

    def _bytes(self, length: int) -> bytes:
        content = self._file.read(length)
        if len(content) < length:
            raise EOFError
        return content
