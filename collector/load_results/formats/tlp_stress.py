"""The CSV file of tlp-stress and easy-cass-stress, also called cassandra-easy-stress (`--csv FILE`).

A row has the time of day and, for each kind of operation, the number of successful ones since the run began. Errors are
counted for all kinds together. The percentiles are those of a decaying reservoir, which also has operations of earlier
intervals, so they are not imported. A row is written every three seconds, and one some time after the last operation.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from collector.load_results import parsing
from collector.load_results.client_format import ClientFormatError, Format, SourceFile
from collector.load_results.client_result import ClientInterval, ClientResult, Operation
from collector.load_results.command_output import intervals_of, rows_of
from collector.load_results.parsing import csv_fields, label_of, whole

NAME = "tlp-stress"
PERIOD_S = 3.0
# For how long the programs wait between the last operation and the last row.
IDLE_S = {"tlp-stress": 1.0}
IDLE_ELSE_S = 2.0
ERRORS = "errors"
# Columns of a variant of the program that are not counts of operations.
_NOT_COUNTED = {"inflights", "requestqueuedepth"}
# Rows are written on time with at least this precision, relative to the period.
_ON_TIME = 0.05
_TOOL = re.compile(r"# ([a-z-]{1,40}-stress) run at ")
_GROUPS = re.compile(r",,[A-Z][\w ]*,.*")
_COLUMNS = re.compile(r"(?P<time>Timestamp|Epoch Time \(ms\)), ?Elapsed Time(?P<ms> \(ms\))?,Count,.*")


def read(file: SourceFile) -> ClientResult:
    table = _Table()
    notes = parsing.read_lines(file.path, table.add)
    parts = [_intervals_by_name(part) for part in table.parts if part.rows]
    if not parts:
        raise ClientFormatError("no rows")
    names = sorted({name for part in parts for name in part})
    operations = [
        Operation(name, tuple(interval for part in parts for interval in part.get(name, ()))) for name in names
    ]
    return file.result(table.tool, operations, [*notes, *table.notes()])


FORMATS = (Format(NAME, re.compile(rf"^{_COLUMNS.pattern}$", re.MULTILINE).search, read),)


@dataclass(frozen=True)
class _Row:
    """The counts since the run began, by the name of their column group."""

    time_s: float
    elapsed_s: float
    counts: dict[str, int]


@dataclass
class _Part:
    """The rows below one header; files that were concatenated have several."""

    tool: str
    is_epoch: bool
    is_ms: bool
    positions: dict[str, int]
    width: int
    rows: list[_Row] = field(default_factory=list)


class _Table:
    def __init__(self) -> None:
        self.tool = NAME
        self.parts: list[_Part] = []
        self._groups: list[str] = []
        self._p99: dict[str, str] = {}

    def add(self, line: str) -> None:
        if match := _TOOL.match(line):
            self.tool = match[1]
        elif line.startswith("#"):
            return
        elif match := _COLUMNS.fullmatch(line):
            self._begin(csv_fields(line), is_epoch=match["time"] != "Timestamp", is_ms=bool(match["ms"]))
        elif _GROUPS.fullmatch(line):
            self._groups = [label_of(name).lower() for name in csv_fields(line) if name.strip()]
        elif self.parts:
            self._add_row(self.parts[-1], csv_fields(line))
        else:
            raise ValueError("a row without a header")

    def _begin(self, columns: Sequence[str], *, is_epoch: bool, is_ms: bool) -> None:
        counts = [index for index, column in enumerate(columns) if column.strip() == "Count"]
        if not self._groups or len(self._groups) > min(len(counts), parsing.MAX_LABELS):
            raise ValueError("the header has no names for its columns")
        positions = dict(zip(self._groups, counts, strict=False))
        self._p99_positions = {
            name: index + columns[index:].index("Latency (p99)")
            for name, index in positions.items()
            if name not in (ERRORS, *_NOT_COUNTED) and "Latency (p99)" in columns[index:]
        }
        self.parts.append(_Part(self.tool, is_epoch, is_ms, positions, len(columns)))

    def _add_row(self, part: _Part, fields: Sequence[str]) -> None:
        if len(fields) != part.width:
            raise ValueError(f"{len(fields)} fields instead of {part.width}")
        time_s = parsing.unix_time_s(fields[0]) if part.is_epoch else parsing.rfc3339_s(fields[0])
        counts = {name: whole(fields[index]) for name, index in part.positions.items() if name not in _NOT_COUNTED}
        elapsed_s = parsing.checked_time_s(parsing.decimal(fields[1])) / (1000 if part.is_ms else 1)
        last = part.rows[-1] if part.rows else _Row(0.0, 0.0, dict.fromkeys(counts, 0))
        if time_s < last.time_s or any(counts[name] < last.counts[name] for name in counts):
            raise ValueError("the time or a count is lower than in the row before")
        part.rows.append(_Row(time_s, elapsed_s, counts))
        self._p99 = {name: fields[index] for name, index in self._p99_positions.items() if counts[name]}

    def notes(self) -> list[str]:
        values = ", ".join(f"{name} {label_of(value)[:8]} ms" for name, value in self._p99.items())
        last = f" (at the end: {values})" if values else ""
        return [f"the percentiles{last} are those of a decaying reservoir, not of the intervals, and are not imported"]


def _intervals_by_name(part: _Part) -> dict[str, tuple[ClientInterval, ...]]:
    """Return the intervals of each operation that occurs; "" has the errors of all operations, if there are any."""
    times_s = [row.time_s for row in part.rows]
    gaps = [after - before for before, after in pairwise(times_s)]
    # The last gap is shorter than the period.
    period_s = median(gaps[:-1]) if len(gaps) > 1 else PERIOD_S
    begin_s = max(times_s[0] - period_s, times_s[0] - part.rows[0].elapsed_s - 1)
    end_s = times_s[-1]
    if gaps and gaps[-1] < (1 - _ON_TIME) * period_s:
        end_s = max(end_s - IDLE_S.get(part.tool, IDLE_ELSE_S), begin_s)
    last, names = part.rows[-1].counts, [name for name in part.positions if name in part.rows[-1].counts]
    active = [name for name in names if last[name] and name != ERRORS]
    offsets_s = [min(time_s, end_s) - begin_s for time_s in times_s]
    rows = {name: rows_of(offsets_s, [row.counts[name] for row in part.rows]) for name in names}
    intervals = {name: intervals_of(rows[name], begin_s) for name in active or names[:1]}
    if last.get(ERRORS):
        failed = [ClientInterval.stated(row.end_s, 0, row.completed) for row in rows[ERRORS]]
        intervals[""] = intervals_of(failed, begin_s)
    return intervals
