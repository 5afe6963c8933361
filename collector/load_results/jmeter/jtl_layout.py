"""Reads the header of JMeter's CSV, and checks its rows."""

import csv
import io
import re
from dataclasses import dataclass
from typing import Any

from collector.load_results.client_format import ClientFormatError
from collector.load_results.jmeter.jmeter_samples import FALSE, MAX_ELAPSED_MS, MAX_TIME_MS, TRUE
from collector.load_results.jmeter.jtl_times import starts_with_time
from collector.printable import one_line

REQUIRED = ("timeStamp", "elapsed", "success")
# What all versions of JMeter save by default begins with these columns.
FIRST_COLUMNS = (
    "timeStamp",
    "elapsed",
    "label",
    "responseCode",
    "responseMessage",
    "threadName",
    "dataType",
    "success",
)
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DELIMITER = re.compile(r'\w+([^\w"])')


@dataclass(frozen=True)
class Layout:
    """The header as in the file (empty if there is none), the delimiter and the columns."""

    header: bytes
    delimiter: str
    columns: tuple[str, ...]


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
    return (
        ""
        if row["success"] in (*TRUE, *FALSE)
        else f"success is neither true nor false: {one_line(row['success'])[:40]}"
    )
