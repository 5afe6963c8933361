"""The CSV of hey (`hey -o csv`) and of oha (`oha --output-format csv`): one row per response.

Times are in seconds since the run began. Requests without a response have no row.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from collector.load_results.client_format import ClientFormatError, CommandTimes, Format, Options, ResultClock
from collector.load_results.client_latency import NS_PER_S
from collector.load_results.client_result import ClientResult, shifted
from collector.load_results.formats.hey import MAX_RESPONSES
from collector.load_results.operation_times import OperationTimes
from collector.load_results.parsing.command_output import last_line_s
from collector.load_results.parsing.field_values import FIRST_ERROR_STATUS, MAX_LENGTH_S, decimal, latency_ns, whole
from collector.load_results.parsing.text_lines import ANOTHER_RUN, csv_row, read_lines


@dataclass(frozen=True)
class _ResponseFile:
    """A format: its name, the load generator, the header, and the columns of a row.

    begin, duration, status  the columns with a request's begin, its duration and the status of its response.
    note                     returns what is missing in a file with a number of rows.
    """

    name: str
    tool: str
    header: str
    begin: str
    duration: str
    status: str
    note: Callable[[int], str]

    def read(self, path: Path, times: CommandTimes, _options: Options) -> ClientResult:
        rows = _Rows(self)
        notes = read_lines(path, rows.add)
        if not rows.number:
            raise ClientFormatError("no rows")
        begin_s = max(last_line_s(path, times, rows.length_s) - rows.length_s, times.begin_s)
        all_notes = (*notes, self.note(rows.number))
        result = ClientResult(self.name, self.tool, path.name, rows.times.operations(), True, all_notes)
        return shifted(result, begin_s)

    def format(self) -> Format:
        sign = re.compile(f"^{re.escape(self.header)}$", re.MULTILINE)
        return Format(self.name, sign, self.read, follows_output=True, clock=ResultClock.STEADY)


def _note_of_hey(rows: int) -> str:
    if rows >= MAX_RESPONSES:
        return f"hey writes {MAX_RESPONSES:,} rows at most; others are missing (hint: use what hey prints without -o)"
    return "requests without a response are not in the file (hint: hey prints them without -o)"


HEY = _ResponseFile(
    "hey-csv",
    "hey",
    "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset",
    begin="offset",
    duration="response-time",
    status="status-code",
    note=_note_of_hey,
)
OHA = _ResponseFile(
    "oha-csv",
    "oha",
    "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status",
    begin="request-start",
    duration="request-duration",
    status="status",
    note=lambda _: "requests without a response are not in the file (hint: oha's JSON has them)",
)
FORMATS = (HEY.format(), OHA.format())


class _Rows:
    """The responses in the rows of a file; times are in seconds since the run began."""

    def __init__(self, columns: _ResponseFile) -> None:
        self.times = OperationTimes()
        self.number = 0
        self.length_s = 0.0
        self._has_begun = False
        self._columns = columns
        self._names = columns.header.split(",")

    def add(self, line: str) -> None:
        """Add a line. Raises ValueError."""
        is_header = line == self._columns.header
        if is_header and self.number:
            raise ValueError(ANOTHER_RUN)
        self._has_begun |= is_header
        if is_header or not self._has_begun:
            # A command may print other lines before.
            return
        row = csv_row(line, self._names)
        begin_s, duration_s = decimal(row[self._columns.begin]), decimal(row[self._columns.duration])
        status = whole(row[self._columns.status])
        if not (0 <= begin_s <= MAX_LENGTH_S and 100 <= status <= 999):
            raise ValueError("not a response: its begin or its status is out of range")
        duration_ns, end_s = latency_ns(duration_s, NS_PER_S), begin_s + duration_s
        if status >= FIRST_ERROR_STATUS:
            self.times.add_error("", end_s, f"status {status}")
        else:
            self.times.add("", end_s, duration_ns)
        self.number += 1
        self.length_s = max(self.length_s, end_s)
