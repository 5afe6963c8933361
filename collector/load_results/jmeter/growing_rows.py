"""Reads JMeter's CSV while JMeter writes it."""

from collections.abc import Iterator

from collector.load_results.client_format import ClientFormatError
from collector.load_results.client_result import Operation
from collector.load_results.jmeter.jmeter_samples import JmeterSamples
from collector.load_results.jmeter.jmeter_table import JmeterTable, MalformedBlockError
from collector.load_results.jmeter.jtl_layout import Layout, check_rows
from collector.load_results.jmeter.jtl_times import JtlTimes
from collector.load_results.parsing.csv_blocks import end_of_records
from collector.printable import one_line

# A longer record is assumed to have an unclosed quote.
MAX_RECORD_BYTES = 256 << 10


class GrowingRows:
    """A growing result (see `GrowingResult`) whose rows have the given layout; `times` converts their times."""

    def __init__(self, layout: Layout, times: JtlTimes) -> None:
        self.problem = ""
        self._times = times
        self._layout = layout
        self._samples = JmeterSamples()
        self._table = JmeterTable(layout.columns, times, self._samples)
        self._rest = b""

    def add(self, data: bytes) -> int:
        self._rest += data
        end = end_of_records(self._rest)
        if not end and len(self._rest) > MAX_RECORD_BYTES:
            end = self._rest.rfind(b"\n") + 1 or len(self._rest)
        block, self._rest = self._rest[:end], self._rest[end:]
        if self._layout.header and self._layout.header in block:
            header = self._layout.header
            block = b"".join(line for line in block.splitlines(keepends=True) if line.rstrip(b"\r\n") != header)
        return self._add_rows(self._times.converted(block))

    def take(self) -> tuple[Operation, ...]:
        return self._samples.take()

    def _add_rows(self, block: bytes) -> int:
        """Add rows; if some are malformed, add the others. Return the number of malformed ones."""
        try:
            self._table.add(block)
        except (MalformedBlockError, ClientFormatError):
            rows = list(self._records(block))
            valid = [row for row in rows if not self._problem(row)]
            self._add_valid(b"".join(valid))
            return len(rows) - len(valid)
        return 0

    def _add_valid(self, rows: bytes) -> None:
        try:
            self._table.add(rows)
        except (MalformedBlockError, ClientFormatError) as error:
            self.problem = self.problem or one_line(error)

    def _records(self, block: bytes) -> Iterator[bytes]:
        """Yield the records of a block; a line with an unclosed or misplaced quote is a record of its own."""
        lines = block.splitlines(keepends=True)
        index = 0
        while index < len(lines):
            end = index + 1
            record = lines[index]
            while record.count(b'"') % 2 and end < len(lines):
                record += lines[end]
                end += 1
            if end > index + 1 and self._problem(record):
                record, end = lines[index], index + 1
            yield record
            index = end

    def _problem(self, record: bytes) -> str:
        """Return why a record is malformed; "" if it is not."""
        try:
            check_rows(record, 1, self._layout)
        except ClientFormatError as error:
            self.problem = self.problem or one_line(error).partition(": ")[2]
            return str(error)
        return ""
