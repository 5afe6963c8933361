"""JMeter's JTL, as CSV and as XML."""

import re
import time
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from typing import BinaryIO
from xml.parsers import expat

from collector.load_results import jmeter_results as jtl
from collector.load_results.client_format import ClientFormatError, Format, GrowingResult, ResultClock, SourceFile
from collector.load_results.client_result import ClientResult
from collector.load_results.jmeter_results import JmeterSamples, JtlTimes, Layout, check_rows, layout_of
from collector.printable import one_line

# CSV: columns are found by name; a file without a header must begin with JMeter's default columns.

REQUIREMENT = "reading JMeter's CSV requires numpy and pyarrow (hint: install them in casstat's environment)"
MAX_HEADER_BYTES = 1 << 16
# The start of another row. If an unclosed field contains one, a quote is malformed; if not, the file is incomplete.
_FURTHER_ROW = re.compile(rb"\n\d{10,}\D\d+\D")


def recognises_csv(text: str) -> bool:
    first = text.split("\n", 1)[0].encode()
    return jtl.is_row(first) or {"timeStamp", "elapsed"} <= set(layout_of(first).columns)


def growing_csv(head: bytes, options: Mapping[str, str]) -> GrowingResult:
    try:
        from collector.load_results.jmeter_table import GrowingRows
    except ImportError:
        raise ClientFormatError(REQUIREMENT) from None
    layout = layout_of(head.partition(b"\n")[0])
    jtl.check_columns(layout)
    return GrowingRows(layout, time.time(), options)


def read_csv(source: SourceFile) -> ClientResult:
    try:
        from collector.load_results.jmeter_table import JmeterTable, MalformedBlockError
    except ImportError:
        raise ClientFormatError(REQUIREMENT) from None
    with source.path.open("rb") as file:
        first = file.readline(MAX_HEADER_BYTES).removeprefix(BOM_UTF8)
        layout = layout_of(first)
        jtl.check_columns(layout)
        if not layout.header:
            file.seek(0)
            file.seek(len(BOM_UTF8) if file.read(3) == BOM_UTF8 else 0)
        notes: list[str] = []
        table = JmeterTable(layout, source.times.begin_s, source.options)
        for line, block in _rows(file, layout, table.times, notes):
            try:
                table.add(block)
            except MalformedBlockError as error:
                check_rows(block, line, layout)
                raise ClientFormatError(f"after line {line}: {one_line(error)}") from None
    return table.samples.result(source, [*notes, *table.times.notes])


def _rows(file: BinaryIO, layout: Layout, times: JtlTimes, notes: list[str]) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of rows, without headers of concatenated files and without an incomplete last row.

    Times are in milliseconds.
    """
    for line, block in jtl.blocks(file, 2 if layout.header else 1, layout.delimiter):
        rows, repeated = layout.without_headers(block)
        if repeated:
            notes.append("the header is repeated; the file may contain several results")
        rows = times.converted(rows)
        is_rest = not block.endswith(b"\n") or block.count(b'"') % 2 == 1
        if is_rest and _is_incomplete(rows, line, layout):
            notes.append("the last row is incomplete and is ignored")
            continue
        yield line, rows
    notes[:] = dict.fromkeys(notes)


def _is_incomplete(row: bytes, line: int, layout: Layout) -> bool:
    if row.count(b'"') % 2 and _FURTHER_ROW.search(row):
        raise ClientFormatError(f"line {line}: unclosed quote")
    try:
        check_rows(row, line, layout)
    except ClientFormatError:
        return True
    return False


# XML (`jmeter.save.saveservice.output_format=xml`): samples within the sample of a transaction controller are
# operations; samples within other samples are sub-results.

SAMPLES = ("sample", "httpSample")
BLOCK_BYTES = 1 << 20
MAX_TOKEN_BYTES = 16 << 20
MAX_DEPTH = 100
# JMeter writes control characters as character references that XML does not allow.
_FORBIDDEN = re.compile(rb"&#x(?:[0-8bcef]|1[0-9a-f]|fff[ef]|d[89a-f][0-9a-f]{2});")
# Processing instructions (JMeter writes that of `jmeter.save.saveservice.xml_pi`) and comments may come first. None may
# be read beyond its own end, or the ways to divide a text into comments would double with each of them.
_BEGIN = re.compile(
    r"\A\s*(?:(?:<\?(?:(?!\?>).)*\?>|<!--(?:(?!-->).)*-->|<!DOCTYPE\b[^>]*>)\s*)*<testResults\b", re.DOTALL
)
_REFERENCE_BYTES = len(b"&#xffff;")


def read_xml(source: SourceFile) -> ClientResult:
    document = _Document()
    notes = []
    with source.path.open("rb") as file:
        for data in _blocks(file):
            document.feed(data)
        if not document.is_finished():
            file.seek(document.position)
            if b"\n<" in file.read(MAX_TOKEN_BYTES)[1:]:
                raise ClientFormatError(f"line {document.line}: unclosed element")
            notes.append("the file is incomplete; its last samples may be missing")
    return document.samples.result(source, notes)


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """Yield the file's content, with references to forbidden characters replaced by text of the same length."""
    rest = b""
    while data := file.read(BLOCK_BYTES):
        data = rest + data
        # A reference may continue in the next block.
        cut = data.rfind(b"&", max(len(data) - _REFERENCE_BYTES, 0))
        data, rest = (data, b"") if cut < 0 else (data[:cut], data[cut:])
        yield _FORBIDDEN.sub(_question_mark, data)
    yield rest


def _question_mark(reference: re.Match[bytes]) -> bytes:
    """Return a reference to a question mark that is as long as the given reference."""
    return b"&#" + b"63;".rjust(len(reference[0]) - 2, b"0")


class _Document:
    """Adds the samples of a document to `samples`."""

    def __init__(self) -> None:
        self.samples = JmeterSamples()
        # For each open sample element, whether it belongs to a transaction controller.
        self._open: list[bool] = []
        self._bytes = 0
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.StartDoctypeDeclHandler = self._refuse

    @property
    def line(self) -> int:
        return self._parser.CurrentLineNumber

    @property
    def position(self) -> int:
        return self._parser.CurrentByteIndex

    def feed(self, data: bytes) -> None:
        """Add the samples in the next part of the file. Raises ClientFormatError."""
        try:
            self._parser.Parse(data, False)
        except expat.ExpatError as error:
            raise ClientFormatError(f"line {error.lineno}: {expat.ErrorString(error.code)}") from None
        self._bytes += len(data)
        if self._bytes - self.position > MAX_TOKEN_BYTES:
            raise ClientFormatError(f"line {self.line}: longer than {MAX_TOKEN_BYTES >> 20} MiB")

    def is_finished(self) -> bool:
        try:
            self._parser.Parse(b"", True)
        except expat.ExpatError:
            return False
        return True

    def _refuse(self, *_: object) -> None:
        raise ClientFormatError(f"line {self.line}: document type declarations are not allowed")

    def _start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag not in SAMPLES:
            return
        if self._open and not self._parser.CurrentColumnNumber:
            # JMeter indents samples within others; otherwise the end of a sample is missing.
            raise ClientFormatError(f"line {self.line}: the previous sample is not closed")
        if len(self._open) == MAX_DEPTH:
            raise ClientFormatError(f"line {self.line}: nested too deeply")
        is_transaction = attributes.get("rm", "").startswith(jtl.TRANSACTION)
        if all(self._open):
            self._add(attributes, is_transaction)
        else:
            self.samples.sub_results += 1
        self._open.append(is_transaction)

    def _end(self, tag: str) -> None:
        if tag in SAMPLES:
            self._open.pop()

    def _add(self, attributes: Mapping[str, str], is_transaction: bool) -> None:
        elapsed_ms = self._number(attributes, "t", jtl.MAX_ELAPSED_MS)
        end_ms = self._number(attributes, "ts", jtl.MAX_TIME_MS) + elapsed_ms
        second = end_ms // jtl.MS_PER_S
        if attributes.get("sc", "1") != "1":
            raise ClientFormatError(
                f"line {self.line}: the element represents several samples (hint: set JMeter's property mode=Standard)"
            )
        label = attributes.get("lb", "").encode(errors="replace")
        self.samples.extend(second, second)
        samples = self.samples.transactions if is_transaction else self.samples.plain
        samples.add_time(end_ms / jtl.MS_PER_S, elapsed_ms / jtl.MS_PER_S)
        success = attributes.get("s", "")
        if success in jtl.TRUE:
            samples.add_completed(label, second, {elapsed_ms: 1})
        elif success in jtl.FALSE:
            code = attributes["rc"].encode(errors="replace") if "rc" in attributes else None
            samples.add_failed(label, second, code, 1)
        else:
            raise ClientFormatError(f"line {self.line}: the attribute s is neither true nor false")

    def _number(self, attributes: Mapping[str, str], name: str, limit: int) -> int:
        text = attributes.get(name, "")
        if not (text.isdecimal() and text.isascii() and len(text) < 20 and int(text) < limit):
            raise ClientFormatError(
                f"line {self.line}: the attribute {name} is not a number of milliseconds: {one_line(text)[:40]}"
            )
        return int(text)


FORMATS = (
    Format("jmeter-csv", recognises_csv, read_csv, growing_csv, {"zone": tuple(jtl.ZONES)}, clock=ResultClock.DELAYED),
    Format("jmeter-xml", _BEGIN.search, read_xml, clock=ResultClock.DELAYED),
)
