"""CSV files with one row per operation, or one row per interval: see docs/client-results.md."""

from collections.abc import Sequence
from pathlib import Path

from collector.load_results.client_format import ClientFormatError, CommandTimes, Format, Options
from collector.load_results.client_result import ClientResult
from collector.load_results.generic import csv_intervals, csv_operations
from collector.load_results.generic.csv_intervals import IntervalRows
from collector.load_results.generic.csv_operations import OperationRows
from collector.load_results.generic.decimal_marks import DecimalMarks
from collector.load_results.parsing.field_values import checked_time_s, rfc3339_s
from collector.load_results.parsing.text_lines import csv_fields, read_lines
from collector.printable import count_text, one_line

NAME = "csv"
TIMES = ("time_s", "time")


def recognises(text: str) -> bool:
    line = text.lstrip().partition("\n")[0]
    try:
        columns = set(_columns(line, _delimiter(line)))
    except ValueError:
        return False
    has_values = any(map(csv_operations.LATENCY.fullmatch, columns)) or columns >= set(csv_intervals.REQUIRED)
    if "time_s" in columns:
        return has_values or not columns.isdisjoint((*csv_operations.COLUMNS, *csv_intervals.COLUMNS))
    return "time" in columns and has_values


def read(path: Path, _times: CommandTimes, _options: Options) -> ClientResult:
    file = _File()
    notes = read_lines(path, file.add)
    return file.result(path.name, notes)


FORMATS = (Format(NAME, recognises, read),)


class _File:
    def __init__(self) -> None:
        self._header = ""
        self._headers = 0

    def add(self, line: str) -> None:
        """Add a line. Raises ValueError."""
        if not self._header:
            self._begin(line)
        if line == self._header:
            # Files that were concatenated have several headers.
            self._headers += 1
            return
        fields = csv_fields(line, self._delimiter)
        if len(fields) != len(self._columns):
            hint = (
                " (hint: if numbers have decimal commas, separate columns with semicolons)"
                if self._delimiter == ","
                else ""
            )
            raise ValueError(f"{len(fields)} fields instead of {len(self._columns)}{hint}")
        row = {column: field.strip() for column, field in zip(self._columns, fields, strict=True)}
        self._rows.add(row, self._time_s(row))

    def _begin(self, header: str) -> None:
        """Read the header. Raises ValueError."""
        self._delimiter = _delimiter(header)
        self._columns = _columns(header, self._delimiter)
        present = [column for column in TIMES if column in self._columns]
        if len(present) != 1:
            raise ValueError("missing column: time_s or time" if not present else "both time_s and time are present")
        self._time_column = present[0]
        self._numbers = DecimalMarks(self._delimiter)
        has_intervals = not set(self._columns).isdisjoint(csv_intervals.REQUIRED)
        form = IntervalRows if has_intervals else OperationRows
        self._rows = form(self._columns, self._numbers)
        known = {*self._rows.known, self._time_column}
        if repeated := sorted({column for column in known if self._columns.count(column) > 1}):
            raise ValueError(f"duplicate columns: {', '.join(repeated)}")
        self._unknown = [column for column in self._columns if column not in known]
        self._header = header

    def _time_s(self, row: dict[str, str]) -> float:
        text = row[self._time_column]
        return rfc3339_s(text) if self._time_column == "time" else checked_time_s(self._numbers.number(text))

    def result(self, source: str, notes: list[str]) -> ClientResult:
        """Return the result. Raises ClientFormatError."""
        operations = self._rows.operations() if self._header else ()
        if not operations:
            raise ClientFormatError("no rows")
        self._numbers.check()
        further = {
            f"ignored columns: {one_line(', '.join(self._unknown))}": self._unknown,
            f"the file has {count_text(self._headers, 'header')}": self._headers > 1,
        }
        all_notes = (*notes, *(note for note, applies in further.items() if applies), *self._rows.notes())
        return ClientResult(NAME, "CSV file", source, operations, notes=all_notes)


def _delimiter(header: str) -> str:
    return ";" if ";" in header else ","


def _columns(header: str, delimiter: str) -> Sequence[str]:
    """Return the names of the columns. Raises ValueError."""
    return [column.strip().lower() for column in csv_fields(header, delimiter)]
