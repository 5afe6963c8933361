"""JMeter's JTL as CSV. Columns are found by name; a file without a header must have JMeter's default columns."""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from collector.clients.client_format import HEAD_BYTES, ClientFormatError, CommandTimes
from collector.clients.client_result import ClientResult
from collector.clients.jmeter.jmeter_samples import FALSE, MAX_ELAPSED_MS, MAX_TIME_MS, TRUE, JmeterSamples
from collector.clients.parsing.csv_blocks import blocks
from collector.printable import one_line

NAME = "jmeter-csv"
REQUIRED = ("timeStamp", "elapsed", "success")
DEFAULT_HEADER = (
    "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,bytes,sentBytes,"
    "grpThreads,allThreads,URL,Latency,IdleTime,Connect"
)
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DELIMITER = re.compile(r'\w+([^\w"])')
# In a field that lacks its closing quote because the file ends, there are no further rows.
_FURTHER_ROW = re.compile(rb"\n\d{10,}\D\d+\D")


@dataclass(frozen=True)
class Layout:
    """The header as in the file (empty if there is none), the delimiter and the columns."""

    header: bytes
    delimiter: str
    columns: tuple[str, ...]


def recognises(head: str) -> bool:
    layout = _layout(head.split("\n", 1)[0].encode())
    return bool(layout.header) and {"timeStamp", "elapsed"} <= set(layout.columns)


def read(path: Path, times: CommandTimes) -> ClientResult:
    del times  # The samples have the time of day.
    try:
        from collector.clients.jmeter.jmeter_table import JmeterTable, MalformedBlockError
    except ImportError:
        raise ClientFormatError(
            "reading JMeter's CSV requires numpy and pyarrow (hint: install casstat[analysis])"
        ) from None
    with path.open("rb") as file:
        first = file.readline(HEAD_BYTES).removeprefix(BYTE_ORDER_MARK)
        layout = _layout(first)
        _check_columns(layout)
        if not layout.header:
            file.seek(0)
            file.seek(len(BYTE_ORDER_MARK) if file.read(3) == BYTE_ORDER_MARK else 0)
        notes: list[str] = []
        samples = JmeterSamples()
        table = JmeterTable(layout.columns, layout.delimiter, samples)
        for line, block in _rows(file, layout, notes):
            try:
                table.add(block)
            except MalformedBlockError as error:
                check_rows(block, line, layout)
                raise ClientFormatError(f"after line {line}: {one_line(error)}") from None
    return samples.result(NAME, path.name, notes)


def _layout(first: bytes) -> Layout:
    """Return the layout that the first line states."""
    line = first.rstrip(b"\r\n")
    text = line.decode(errors="replace")
    match = _DELIMITER.match(text)
    delimiter = match[1] if match and match[1].isascii() else ","
    try:
        columns = tuple(next(csv.reader([text], delimiter=delimiter), []))
    except csv.Error:
        columns = ()
    if columns and columns[0].isdigit():
        return Layout(b"", delimiter, tuple(DEFAULT_HEADER.split(",")))
    return Layout(line, delimiter, columns)


def _check_columns(layout: Layout) -> None:
    missing = [name for name in REQUIRED if name not in layout.columns]
    if missing:
        raise ClientFormatError(f"not a JTL with the columns that are needed: {', '.join(missing)} missing")
    if len(set(layout.columns)) < len(layout.columns):
        raise ClientFormatError("two columns have the same name")


def _rows(file: BinaryIO, layout: Layout, notes: list[str]) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of rows, without headers of concatenated files and without an incomplete last row."""
    header = re.compile(rb"^%s\r?$" % re.escape(layout.header), re.MULTILINE) if layout.header else None
    for line, block in blocks(file, 2 if header else 1, layout.delimiter):
        rows = block
        if header and layout.header in block:
            rows, repeated = header.subn(b"", block)
            if repeated:
                notes.append("the header is repeated; the file may consist of several results")
        if _is_last(block) and _is_incomplete(rows, line, layout):
            notes.append("the last row is incomplete and is ignored")
            continue
        yield line, rows
    notes[:] = dict.fromkeys(notes)


def _is_last(block: bytes) -> bool:
    """Return whether a block is what follows the last complete row of the file."""
    return not block.endswith(b"\n") or block.count(b'"') % 2 == 1


def _is_incomplete(row: bytes, line: int, layout: Layout) -> bool:
    if row.count(b'"') % 2 and _FURTHER_ROW.search(row):
        raise ClientFormatError(f"line {line}: a quote is not closed")
    try:
        check_rows(row, line, layout)
    except ClientFormatError:
        return True
    return False


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
            return f"{name} is not a number of milliseconds: {one_line(row[name])[:40]}"
    if row.get("SampleCount", "1") != "1":
        return "a row stands for several samples (hint: set JMeter's property mode=Standard)"
    return (
        ""
        if row["success"] in (*TRUE, *FALSE)
        else f"success is neither true nor false: {one_line(row['success'])[:40]}"
    )
