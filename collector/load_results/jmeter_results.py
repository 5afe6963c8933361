"""What JMeter's results have in common, as CSV and as XML.

A sample's `timeStamp` is assumed to be its start, which is JMeter's default. JMeter's threads do not follow a schedule,
so the elapsed time is the service time.

JMeter decides whether a sample succeeded: assertions may reject a response with code 200, or accept one with code 500.

Samples of transaction controllers contain other samples, so they are counted only if a file has no others. Sub-results
(such as redirects and embedded resources) are contained in other samples, so they are not counted.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any, BinaryIO

from collector.load_results.client_format import ClientFormatError, SourceFile
from collector.load_results.client_result import ClientResult, Operation, applicable
from collector.load_results.operation_times import OperationTimes, checked_seconds
from collector.printable import count_text, one_line

NS_PER_MS = 1_000_000
MS_PER_S = 1000
TRANSACTION = "Number of samples in transaction : "
"""How the message of a transaction controller's sample begins."""
TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
MAX_TIME_MS = 1 << 53
MAX_ELAPSED_MS = 1 << 31
ASSERTION = "assertion failed"


class LabelSamples(OperationTimes):
    """Samples by label and second; `number` is how many have been added."""

    number = 0

    def add_completed(self, label: bytes, second: int, counts_by_ms: Mapping[int, int]) -> None:
        """Add samples that succeeded and ended within a second."""
        counts = {elapsed_ms * NS_PER_MS: count for elapsed_ms, count in counts_by_ms.items()}
        self.number += sum(counts.values())
        self.add_counts(_text(label), second, counts)

    def add_failed(self, label: bytes, second: int, code: bytes | None, count: int) -> None:
        """Add samples that failed and ended within a second; `code` is the response code, None if it is not saved."""
        self.number += count
        self.add_error_count(_text(label), second, _text(_kind(code)), count)


class JmeterSamples:
    """The samples of a file: those of transaction controllers, and `plain` ones."""

    def __init__(self) -> None:
        self.plain, self.transactions = LabelSamples(), LabelSamples()
        self.sub_results = 0
        # Samples that may be those of transaction controllers, which cannot be recognised.
        self.containers = 0
        self._seconds: range | None = None

    def extend(self, first_second: int, last_second: int) -> None:
        """Note that the file has samples in this range. Raises ClientFormatError if the file's range is too long."""
        known = self._seconds or range(first_second, last_second + 1)
        self._seconds = checked_seconds(min(known.start, first_second), max(known.stop - 1, last_second))

    def take(self) -> tuple[Operation, ...]:
        """Return the total of each label's samples since the last call, and forget them.

        The samples of transaction controllers are returned until the first other sample has been added.
        """
        self._seconds = None
        transactions = self.transactions.take()
        return self.plain.take() if self.plain.number else transactions

    def result(self, file: SourceFile, notes: list[str]) -> ClientResult:
        """Return the samples as the result in a file. Raises ClientFormatError."""
        counted = self.plain if self.plain.number else self.transactions
        all_notes = [*notes, *self._notes(), *counted.notes("sample")]
        return counted.result(file, "JMeter", all_notes, empty="the file has no samples")

    def _notes(self) -> list[str]:
        transactions = count_text(self.transactions.number, "transaction controller sample")
        notes = {
            f"{transactions} counted as operations, because the file has no other samples": (
                self.transactions.number and not self.plain.number
            ),
            f"{transactions} not counted; the samples inside them are counted instead": (
                self.transactions.number and self.plain.number
            ),
            f"{count_text(self.sub_results, 'sub-result')} not counted; the samples that contain them are counted "
            "instead": self.sub_results,
            f"{count_text(self.containers, 'sample')} counted that contain the one before of their thread; if they are "
            "those of transaction controllers, operations count twice (hint: let JMeter save the responseMessage)": (
                self.containers
            ),
        }
        return applicable(notes)


def _kind(code: bytes | None) -> bytes:
    """Return the kind of error as in JMeter's report: the response code, unless the response itself succeeded."""
    if code is None:
        return b""
    is_success = not code or (code.isdigit() and 200 <= int(code[:9]) < 400)
    return ASSERTION.encode() if is_success else code


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")


# Formatted times in the CSV (`jmeter.save.saveservice.timestamp_format`). The file does not state the format, a pattern
# of Java's SimpleDateFormat, so it is deduced from the first row: a date in numbers, a time of 24 hours, and perhaps
# milliseconds and a time zone. Whether a date such as 02/11/26 begins with the month or the day is unknown; the date
# that is nearer to the run is taken.

ZONES = {"local": None, "UTC": timezone.utc}
_TIME = (
    rb'^(?P<quote>")?(?P<first>\d{1,4})(?P<separator>[/.-])(?P<second>\d{1,2})(?P=separator)(?P<third>\d{2}|\d{4})[ T]'
    rb"(?P<time>\d{1,2}:\d{2}:\d{2})(?:(?(quote)[.,:]|[.:])(?P<ms>\d{3}))?(?: ?(?P<zone>Z|[+-]\d{2}(?::?\d{2})?))?"
    rb'(?(quote)")(?=%s)'
)
Order = tuple[int, int, int]
"""The positions of year, month and day."""
YEAR_FIRST, MONTH_FIRST, DAY_FIRST = (0, 1, 2), (2, 0, 1), (2, 1, 0)
_NOT_A_TIME = (ValueError, OverflowError, OSError)


def starts_with_time(line: bytes) -> bytes:
    """Return the delimiter after a time, formatted or in milliseconds, at the beginning of a line; b"" if none is."""
    match = re.match(_TIME % rb"[,;|\t]", line) or re.match(rb"\d{13}(?=[,;|\t])", line)
    return line[match.end() : match.end() + 1] if match else b""


@dataclass
class JtlTimes:
    """Replaces formatted times at the beginning of rows by milliseconds since the epoch.

    near_s  a time in seconds since the epoch that is near to the rows' times.
    zone    the time zone of times that state none; None for this machine's.
    """

    delimiter: str
    near_s: float
    zone: tzinfo | None = None
    notes: list[str] = field(default_factory=list)
    has_whole_seconds: bool = False

    def __post_init__(self) -> None:
        self._pattern = re.compile(_TIME % re.escape(self.delimiter).encode(), re.MULTILINE)
        self._order: Order | None = None
        self._second_s = lru_cache(maxsize=10_000)(self._uncached_second_s)

    def converted(self, block: bytes) -> bytes:
        """Return a block of rows with its times in milliseconds; malformed times remain as they are."""
        if re.match(rb"\s*\d+%s" % re.escape(self.delimiter).encode(), block):
            return block
        return self._pattern.sub(self._converted_time, block)

    def _converted_time(self, match: re.Match[bytes]) -> bytes:
        time = (match["first"], match["second"], match["third"]), match["time"], match["zone"] or b""
        try:
            self._order = self._order or self._order_of(match, *time)
            second_s = self._second_s(self._order, *time)
        except _NOT_A_TIME:
            return match[0]
        return b"%d" % (second_s * MS_PER_S + int(match["ms"] or 0))

    def _order_of(self, match: re.Match[bytes], date: Sequence[bytes], time: bytes, zone: bytes) -> Order:
        """Deduce the format from the first time. Raises ValueError."""
        distances = {}
        for order in [YEAR_FIRST] if len(date[0]) == 4 else [MONTH_FIRST, DAY_FIRST]:
            with suppress(*_NOT_A_TIME):
                distances[abs(self._second_s(order, date, time, zone) - self.near_s)] = order
        if not distances:
            raise ValueError("not a date")
        order = distances[min(distances)]
        if not zone and self.zone is None:
            self.notes.append(
                "timeStamp states no time zone: this machine's is assumed (hint: jmeter-csv,zone=UTC:FILE)"
            )
        if len(distances) > 1:
            name = "month" if order == MONTH_FIRST else "day"
            self.notes.append(f"timeStamp is assumed to begin with the {name}, because that is nearer to the run")
        if match["ms"] is None:
            self.has_whole_seconds = True
            self.notes.append("timeStamp has whole seconds, so operations may be assigned to the second before")
        return order

    def _uncached_second_s(self, order: Order, date: Sequence[bytes], time: bytes, zone: bytes) -> int:
        year, month, day = (int(date[position]) for position in order)
        hour, minute, second = map(int, time.split(b":"))
        year += 2000 if year < 100 else 0
        return int(datetime(year, month, day, hour, minute, second, tzinfo=_zone(zone) or self.zone).timestamp())


def _zone(text: bytes) -> tzinfo | None:
    if not text:
        return None
    if text == b"Z":
        return timezone.utc
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[3:].lstrip(b":") or 0))
    return timezone(-offset if text.startswith(b"-") else offset)


# The header of the CSV, and its rows.

REQUIRED = ("timeStamp", "elapsed", "success")
# What all versions of JMeter save by default begins with these columns.
FIRST_COLUMNS = (
    *("timeStamp", "elapsed", "label", "responseCode"),
    *("responseMessage", "threadName", "dataType", "success"),
)
_DELIMITER = re.compile(r'\w+([^\w"])')


@dataclass(frozen=True)
class Layout:
    """The header as in the file (empty if there is none), the delimiter and the columns."""

    header: bytes
    delimiter: str
    columns: tuple[str, ...]

    def without_headers(self, block: bytes) -> tuple[bytes, int]:
        """Return a block of rows with empty lines instead of headers, as concatenated files have, and their number."""
        if not self.header or self.header not in block:
            return block, 0
        return re.subn(rb"^%s\r?$" % re.escape(self.header), b"", block, flags=re.MULTILINE)


def layout_of(first: bytes) -> Layout:
    """Return the layout that the first line states."""
    line = first.rstrip(b"\r\n")
    text = line.decode(errors="replace")
    if delimiter := starts_with_time(line).decode():
        width = len(_fields(text, delimiter))
        return Layout(b"", delimiter, (*FIRST_COLUMNS, *(f"column {number}" for number in range(9, width + 1))))
    match = _DELIMITER.match(text)
    delimiter = match[1] if match and match[1].isascii() and match[1] != "\0" else ","
    return Layout(line, delimiter, tuple(_fields(text, delimiter)))


def is_row(first: bytes) -> bool:
    """Return whether the first line is a row with JMeter's default columns, so that the file has no header."""
    line = first.rstrip(b"\r\n")
    fields = _fields(line.decode(errors="replace"), starts_with_time(line).decode())
    return len(fields) >= len(FIRST_COLUMNS) and fields[1].isdecimal() and fields[7] in (*TRUE, *FALSE)


def _fields(line: str, delimiter: str) -> list[str]:
    """Return the fields of a line; none if it is malformed."""
    try:
        return next(csv.reader([line], delimiter=delimiter), []) if delimiter else []
    except csv.Error:
        return []


def check_columns(layout: Layout) -> None:
    """Raise ClientFormatError if the columns do not describe samples."""
    missing = [name for name in REQUIRED if name not in layout.columns]
    if missing:
        raise ClientFormatError(f"not a usable JTL file: missing columns: {', '.join(missing)}")
    if len(set(layout.columns)) < len(layout.columns):
        raise ClientFormatError("two columns have the same name")


def check_rows(block: bytes, line: int, layout: Layout) -> None:
    """Raise ClientFormatError if a row is malformed; `line` is the number of the block's first line."""
    text = io.StringIO(block.decode(errors="replace"), newline="")
    reader = csv.reader(text, delimiter=layout.delimiter, strict=True)
    number = line
    try:
        for fields in reader:
            if fields and (problem := _problem(dict(zip(layout.columns, fields, strict=False)), len(fields), layout)):
                raise ClientFormatError(f"line {number}: {problem}")
            number = line + reader.line_num
    except csv.Error as error:
        raise ClientFormatError(f"line {number}: {error}") from None


def _problem(row: dict[str, Any], width: int, layout: Layout) -> str:
    """Return why a row is malformed, "" if it is not."""
    if width != len(layout.columns):
        return f"{width} fields instead of {len(layout.columns)}"
    for name, limit in (("timeStamp", MAX_TIME_MS), ("elapsed", MAX_ELAPSED_MS)):
        if not (row[name].isdecimal() and row[name].isascii() and int(row[name][:19]) < limit):
            hint = " (hint: run JMeter with timestamp_format=ms)" if name == "timeStamp" else ""
            return f"{name} is not a number of milliseconds: {one_line(row[name])[:40]}{hint}"
    if row.get("SampleCount", "1") != "1":
        return "a row represents several samples (hint: set JMeter's property mode=Standard)"
    if row["success"] not in (*TRUE, *FALSE):
        return f"success is neither true nor false: {one_line(row['success'])[:40]}"
    return ""


# Blocks of whole records; quoted fields may contain line breaks. A stray quote would make a lenient parser read many
# records as one field, so quotes are accepted only around fields.

BLOCK_BYTES = 4 << 20
MAX_RECORD_BYTES = 16 << 20


def blocks(file: BinaryIO, line: int, delimiter: str) -> Iterator[tuple[int, bytes]]:
    """Yield blocks, each with the number of its first line; only the last one may end without a line break.

    `line` is the number of the file's next line. Raises ClientFormatError and OSError.
    """
    quoted = _quoted_field(delimiter)
    rest = b""
    while data := file.read(BLOCK_BYTES):
        rest += data
        end = end_of_records(rest)
        if end:
            block, rest = rest[:end], rest[end:]
            _check_quotes(block, line, quoted)
            yield line, block
            line += block.count(b"\n")
        elif len(rest) > MAX_RECORD_BYTES:
            raise ClientFormatError(f"line {line}: longer than {MAX_RECORD_BYTES >> 20} MiB, or unclosed quote")
    if rest:
        yield line, rest


def end_of_records(data: bytes) -> int:
    """Return the position after the last line break outside quotes: an even number of quotes precedes it."""
    end = data.rfind(b"\n")
    quotes = data.count(b'"', 0, max(end, 0))
    while end >= 0 and quotes % 2:
        before_quote = data.rfind(b"\n", 0, data.rfind(b'"', 0, end))
        quotes -= data.count(b'"', max(before_quote, 0), end)
        end = before_quote
    return end + 1


def _quoted_field(delimiter: str) -> re.Pattern[bytes]:
    ends = re.escape(delimiter).encode() + rb"\r\n"
    # The pattern begins with a quote, because the search for a fixed character is fast.
    return re.compile(rb'"(?<![^%s]")[^"]*(?:""[^"]*)*"(?![^%s])' % (ends, ends))


def _check_quotes(block: bytes, line: int, quoted: re.Pattern[bytes]) -> None:
    if b'"' not in block or b'"' not in quoted.sub(b"", block):
        return
    unquoted = quoted.sub(lambda match: b"\n" * match[0].count(b"\n"), block)
    line += unquoted.count(b"\n", 0, unquoted.index(b'"'))
    raise ClientFormatError(f"line {line}: unexpected quote inside a field")
