"""JMeter's JTL as CSV. Columns are found by name; a file without a header must begin with JMeter's default columns."""

import re
import time
from collections.abc import Iterator
from datetime import tzinfo
from pathlib import Path
from typing import BinaryIO

from collector.load_results.client_format import (
    HEAD_BYTES,
    AcceptedOptions,
    ClientFormatError,
    CommandTimes,
    Format,
    GrowingResult,
    Options,
    ResultClock,
)
from collector.load_results.client_result import ClientResult
from collector.load_results.jmeter.jmeter_samples import JmeterSamples
from collector.load_results.jmeter.jtl_layout import (
    BYTE_ORDER_MARK,
    Layout,
    check_columns,
    check_rows,
    is_row,
    layout_of,
)
from collector.load_results.jmeter.jtl_times import ZONES, JtlTimes
from collector.load_results.parsing.csv_blocks import blocks
from collector.printable import one_line

NAME = "jmeter-csv"
OPTIONS: AcceptedOptions = {"zone": tuple(ZONES)}
REQUIREMENT = "reading JMeter's CSV requires numpy and pyarrow (hint: install them in casstat's environment)"
# The start of another row. If an unclosed field contains one, a quote is malformed; if not, the file is incomplete.
_FURTHER_ROW = re.compile(rb"\n\d{10,}\D\d+\D")


def recognises(text: str) -> bool:
    first = text.split("\n", 1)[0].encode()
    return is_row(first) or {"timeStamp", "elapsed"} <= set(layout_of(first).columns)


def growing(head: bytes, options: Options) -> GrowingResult:
    try:
        from collector.load_results.jmeter.growing_rows import GrowingRows
    except ImportError:
        raise ClientFormatError(REQUIREMENT) from None
    layout = layout_of(head.partition(b"\n")[0])
    check_columns(layout)
    return GrowingRows(layout, JtlTimes(layout.delimiter, time.time(), _zone(options)))


def _zone(options: Options) -> tzinfo | None:
    return ZONES[options.get("zone", "local")]


def read(path: Path, times: CommandTimes, options: Options) -> ClientResult:
    try:
        from collector.load_results.jmeter.jmeter_table import JmeterTable, MalformedBlockError
    except ImportError:
        raise ClientFormatError(REQUIREMENT) from None
    with path.open("rb") as file:
        first = file.readline(HEAD_BYTES).removeprefix(BYTE_ORDER_MARK)
        layout = layout_of(first)
        check_columns(layout)
        if not layout.header:
            file.seek(0)
            file.seek(len(BYTE_ORDER_MARK) if file.read(3) == BYTE_ORDER_MARK else 0)
        notes: list[str] = []
        samples = JmeterSamples()
        jtl_times = JtlTimes(layout.delimiter, times.begin_s, _zone(options))
        table = JmeterTable(layout.columns, jtl_times, samples)
        for line, block in _rows(file, layout, jtl_times, notes):
            try:
                table.add(block)
            except MalformedBlockError as error:
                check_rows(block, line, layout)
                raise ClientFormatError(f"after line {line}: {one_line(error)}") from None
    return samples.result(NAME, path.name, [*notes, *jtl_times.notes])


FORMATS = (Format(NAME, recognises, read, growing, OPTIONS, clock=ResultClock.DELAYED),)


def _rows(file: BinaryIO, layout: Layout, times: JtlTimes, notes: list[str]) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of rows, without headers of concatenated files and without an incomplete last row.

    Times are in milliseconds.
    """
    header = re.compile(rb"^%s\r?$" % re.escape(layout.header), re.MULTILINE) if layout.header else None
    for line, block in blocks(file, 2 if header else 1, layout.delimiter):
        rows = block
        if header and layout.header in block:
            rows, repeated = header.subn(b"", block)
            if repeated:
                notes.append("the header is repeated; the file may contain several results")
        rows = times.converted(rows)
        if _is_last(block) and _is_incomplete(rows, line, layout):
            notes.append("the last row is incomplete and is ignored")
            continue
        yield line, rows
    notes[:] = dict.fromkeys(notes)


def _is_last(block: bytes) -> bool:
    """Return whether a block is the rest of the file after the last complete row."""
    return not block.endswith(b"\n") or block.count(b'"') % 2 == 1


def _is_incomplete(row: bytes, line: int, layout: Layout) -> bool:
    if row.count(b'"') % 2 and _FURTHER_ROW.search(row):
        raise ClientFormatError(f"line {line}: unclosed quote")
    try:
        check_rows(row, line, layout)
    except ClientFormatError:
        return True
    return False
