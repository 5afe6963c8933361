"""Gatling's `simulation.log`, as text and in binary form.

A request belongs to the second in which it ended. Its response time begins when Gatling sends it, whatever rate users
are injected at, so it is the service time. Each redirect is a request, as in Gatling's own report; groups are not,
because they contain requests. Requests are named as Gatling prints them: "group / name".
"""

import re
from collections.abc import Callable, Sequence
from typing import BinaryIO

from collector.load_results.client_format import ClientFormatError, Format, ResultClock, SourceFile
from collector.load_results.client_result import ClientResult, applicable
from collector.load_results.operation_times import OperationTimes
from collector.load_results.parsing import checked_time_s, label_of, latency_ns, read_lines
from collector.printable import count_text, one_line

MS_NS = 1_000_000
MS_PER_S = 1000
_STATUS = re.compile(r"status\..*found (\d{3})")


class _Requests:
    """The requests of a log. `errors` is the number of errors that Gatling logs apart from requests."""

    def __init__(self) -> None:
        self.errors = self.runs = 0
        self.tool = "Gatling"
        self._times = OperationTimes()

    def add(self, groups: Sequence[str], name: str, begin_ms: int, end_ms: int, message: str | None) -> None:
        """Add a request; `message` states why it failed, or is None if it succeeded. Raises ValueError."""
        duration_ns = latency_ns(end_ms - begin_ms, MS_NS)
        end_s = checked_time_s(end_ms / MS_PER_S)
        label = " / ".join([*groups, name])
        if message is None:
            self._times.add(label, end_s, duration_ns)
            return
        status = _STATUS.match(message)
        self._times.add_error(label, end_s, f"status {status[1]}" if status else message.strip())

    def result(self, file: SourceFile, notes: Sequence[str]) -> ClientResult:
        further = {
            f"the file has {count_text(self.runs, 'run')} of Gatling": self.runs > 1,
            f"{count_text(self.errors, 'error')} outside of requests not counted": self.errors,
        }
        all_notes = (*notes, *applicable(further), *self._times.notes("request"))
        return self._times.result(file, self.tool, all_notes)


# Text, which versions up to 3.12 write: tab-separated records, times in milliseconds. A request's record has, before OK
# or KO, its begin and its end (versions before 2.2 have four times), before these its name, and before the name its
# groups, separated by commas. Older versions have further fields at the beginning.

OTHER_RECORDS = ("USER", "GROUP", "ASSERTION")
STATUSES = ("OK", "KO")
_TEXT_SIGN = re.compile(r"\A(?:ASSERTION\t\S+\n)*RUN\t[^\n]*\t")
_TIME = re.compile(r"\d{13}")
_VERSION = re.compile(r"\d+\.\d+[\w.-]*")


def read_text(file: SourceFile) -> ClientResult:
    log = _TextLog()
    return log.result(file, read_lines(file.path, log.add_line))


class _TextLog(_Requests):
    def add_line(self, line: str) -> None:
        kind, *fields = line.split("\t")
        if kind == "REQUEST":
            self._add_request(fields)
        elif kind == "RUN":
            self.runs += 1
            if fields and _VERSION.fullmatch(fields[-1]):
                self.tool = f"Gatling {label_of(fields[-1])}"
        elif kind == "ERROR":
            self.errors += 1
        elif kind not in OTHER_RECORDS:
            raise ValueError("not a record of Gatling's log")

    def _add_request(self, fields: list[str]) -> None:
        ends = [
            index
            for index, field in enumerate(fields)
            if field in STATUSES and index > 3 and all(map(_TIME.fullmatch, fields[index - 2 : index]))
        ]
        if not ends:
            raise ValueError("not a request in Gatling's log")
        end = ends[0]
        begin = end - 4 if end > 5 and all(map(_TIME.fullmatch, fields[end - 4 : end])) else end - 2
        message = None if fields[end] == "OK" else "".join(fields[end + 1 : end + 2])
        groups = [group for group in fields[begin - 2].split(",") if group]
        self.add(groups, fields[begin - 1], int(fields[begin]), int(fields[end - 1]), message)


# The binary form, which versions from 3.13 on write. Numbers are big-endian. A text is its length in bytes, the bytes,
# and how they encode characters: 0 for Latin-1, 1 for UTF-16; an empty text is only its length. In the records after
# the header, a text is preceded by its number, and occurs later as its negative number alone. Times are milliseconds
# since the run began, which the header states.

RUN, REQUEST, USER, GROUP, ERROR = range(5)
MAX_TEXT_BYTES = 1 << 20
MAX_TEXTS_BYTES = 256 << 20
MAX_TEXTS = 1_000_000
MAX_GROUPS = 1000
ENCODINGS = {0: "latin-1", 1: "utf-16-le"}
_BINARY_SIGN = re.compile(r"\A\x00\x00\x00\x00[\x03-\x1f]\d+\.\d+")
_NOT_A_LOG = "not a binary log of Gatling (hint: the supported versions are 3.13 and 3.14)"


def read_binary(file: SourceFile) -> ClientResult:
    with file.path.open("rb") as content:
        log = _BinaryLog(content)
        notes = []
        try:
            log.read_header()
            log.read_records()
        except EOFError:
            notes.append("the last record is incomplete and is ignored")
        except ValueError as error:
            raise ClientFormatError(f"at byte {content.tell()}: {one_line(error)}") from None
    return log.result(file, notes)


class _BinaryLog(_Requests):
    """Reads a log from a file. All functions raise ValueError for malformed content, and EOFError at its end."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self._begin_ms = 0
        self._texts: dict[int, str] = {}
        self._texts_bytes = 0

    def read_header(self) -> None:
        if self._byte() != RUN:
            raise ValueError(_NOT_A_LOG)
        self.tool = f"Gatling {label_of(self._text())}"
        self._text()  # The simulation's class.
        self._begin_ms = self._int(8)
        self._text()  # The run's description.
        for _ in range(self._count()):
            self._text()  # A scenario.
        for _ in range(self._count()):
            self._bytes(self._count(MAX_TEXT_BYTES))  # An assertion.

    def read_records(self) -> None:
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
        self.add(groups, name, self._begin_ms + begin_ms, self._begin_ms + end_ms, reason)

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
        self.errors += 1

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
        length = self._count(MAX_TEXT_BYTES)
        if not length:
            return ""
        content, encoding = self._bytes(length), self._byte()
        if encoding not in ENCODINGS:
            raise ValueError(_NOT_A_LOG)
        return content.decode(ENCODINGS[encoding], errors="replace")

    def _count(self, limit: int = MAX_GROUPS) -> int:
        count = self._int()
        if not 0 <= count <= limit:
            raise ValueError(_NOT_A_LOG)
        return count

    def _flag(self) -> bool:
        value = self._byte()
        if value > 1:
            raise ValueError(_NOT_A_LOG)
        return bool(value)

    def _int(self, length: int = 4) -> int:
        return int.from_bytes(self._bytes(length), "big", signed=True)

    def _byte(self) -> int:
        return self._bytes(1)[0]

    def _bytes(self, length: int) -> bytes:
        content = self._file.read(length)
        if len(content) < length:
            raise EOFError
        return content


FORMATS = (
    Format("gatling", _TEXT_SIGN.search, read_text, clock=ResultClock.STEADY),
    Format("gatling-binary", _BINARY_SIGN.search, read_binary, clock=ResultClock.STEADY),
)
