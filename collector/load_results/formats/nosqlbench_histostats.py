"""NoSQLBench's CSV of histogram statistics (`--log-histostats FILE`), of versions 2 to 5.

A row has the tag of a metric, an interval, and the number, percentiles and extremes of the values that were recorded in
it, in nanoseconds. Several metrics describe the same operations; `hdr_histogram.py` states which one is counted. The
operations are NoSQLBench's activities.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from collector.load_results import hdr_histogram as hdr
from collector.load_results.client_format import ClientFormatError, Format, SourceFile
from collector.load_results.client_result import ClientInterval, ClientResult, Operation, failed_note
from collector.load_results.parsing import checked_time_s, label_of, read_lines, stated_latency_s

NS = 1e-9
MAX_TAGS = 500
_COLUMNS = "#Tag,Interval_Start,Interval_Length,count,"
_START = re.compile(r"#\[StartTime: (\d{1,12}\.\d+) ")
_NUMBER = r"-?\d{1,12}(?:\.\d+)?(?:E-?\d{1,2})?"
_ROW = re.compile(
    rf"(?:Tag=(?P<tag>.{{0,1000}}?),)?(?P<begin>{_NUMBER}),(?P<length>{_NUMBER}),(?P<count>\d{{1,18}})(?P<values>(?:,\d{{1,19}}){{1,40}})"
)
_LIMITS = {"min": 0.0, "max": 100.0}
_BEGIN_S = attrgetter("begin_s")
# With fewer values than this, the 99.99th percentile is the maximum.
_MAX_COUNT = 5000


def read(file: SourceFile) -> ClientResult:
    table = _Table()
    notes = read_lines(file.path, table.add)
    if not table.rows:
        raise ClientFormatError("no rows")
    counts = {tag: [row.completed for row in rows] for tag, rows in table.rows.items()}
    hdr.require_distinct(counts, file)
    parts, choice_notes = hdr.chosen({tag: sum(numbers) for tag, numbers in counts.items()}, file)
    tags: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for tag, part in parts.items():
        if part.kind in tags[part.operation]:
            raise ClientFormatError(f"several metrics have the name of the operation {part.operation}")
        tags[part.operation][part.kind] = tag
    series = {name: _Series(table, by_kind) for name, by_kind in tags.items()}
    operations = tuple(
        Operation(label_of(name), tuple(one.intervals([other for other in series.values() if other is not one])))
        for name, one in sorted(series.items())
    )
    notes += failed_note(sum(interval.failed for operation in operations for interval in operation.intervals))
    if table.has_wrong_percentiles:
        notes.append("the file's percentiles contradict its maxima, as in old versions, and are not imported")
    return file.result("NoSQLBench", operations, [*notes, *choice_notes])


_SIGN = re.compile(f"^{re.escape(_COLUMNS)}", re.MULTILINE)
FORMATS = (Format("nosqlbench-histostats", _SIGN.search, read, options={"metric": ()}),)


class _Table:
    """The rows by tag, as if no operation had failed."""

    def __init__(self) -> None:
        self.rows: defaultdict[str, list[ClientInterval]] = defaultdict(list)
        self.has_wrong_percentiles = False
        self._start_s: float | None = None
        self._percentages: list[float] = []

    def add(self, line: str) -> None:
        if match := _START.match(line):
            self._start_s = checked_time_s(float(match[1]))
        elif line.startswith(_COLUMNS):
            self._percentages = [_percentage(column) for column in line.split(",")[4:]]
        elif not line.startswith("#"):
            self._add_row(line)

    def _add_row(self, line: str) -> None:
        match = _ROW.fullmatch(line)
        if match is None or self._start_s is None:
            raise ValueError("malformed row" if self._start_s else "a row without a start time before it")
        values = list(map(int, match["values"].split(",")[1:]))
        count, length_s = int(match["count"]), float(match["length"])
        if len(values) != len(self._percentages) or length_s < 0:
            raise ValueError("malformed row")
        stated = dict(zip(self._percentages, values, strict=True)) if count else {}
        self.has_wrong_percentiles |= 0 < count < _MAX_COUNT and stated.get(99.99, 0) < stated.get(100.0, 0)
        tag = label_of(match["tag"] or "")
        if tag not in self.rows and len(self.rows) >= MAX_TAGS:
            raise ValueError(f"more than {MAX_TAGS} metrics")
        begin_s = checked_time_s(self._start_s + float(match["begin"]))
        stated_s = {percentage: stated_latency_s(value, NS) for percentage, value in stated.items()}
        end_s = checked_time_s(begin_s + length_s)
        self.rows[tag].append(ClientInterval.stated(end_s, count, 0, stated_s, begin_s=begin_s))


def _percentage(column: str) -> float:
    """Return the percentage that a column's name states: 99.9 for p999. Raises ValueError."""
    if column in _LIMITS:
        return _LIMITS[column]
    if not re.fullmatch(r"p\d{2,6}", column):
        raise ValueError(f"unknown column: {label_of(column)}")
    return float(f"{column[1:3]}.{column[3:] or 0}")


class _Series:
    """The rows of one operation. `tags` has its metrics by kind: one with latencies and, if known, the successes."""

    def __init__(self, table: _Table, tags: Mapping[str, str]) -> None:
        kinds = [kind for kind in tags if kind not in (hdr.SUCCEEDED, hdr.FAILED, hdr.WAITING)] or list(tags)
        self._rows = table.rows[tags[kinds[0]]]
        self._succeeded = sorted(table.rows[tags[hdr.SUCCEEDED]], key=_BEGIN_S) if hdr.SUCCEEDED in tags else []
        self._is_response = kinds[0] == hdr.RESPONSE
        self._has_percentiles = not table.has_wrong_percentiles
        active = [row for row in self._rows if row.completed]
        self.span_s = (active[0].begin_s, active[-1].end_s) if active else None

    def intervals(self, others: Sequence["_Series"]) -> Iterator[ClientInterval]:
        """Yield the intervals.

        NoSQLBench may continue to write rows of an activity that has ended. Rows before the first and after the last
        value are left out if another activity is active then; otherwise, they are a stall.
        """
        begin_s, end_s = self.span_s or (0.0, float("inf"))
        spans = [other.span_s for other in others if other.span_s]
        attempted = [row.completed for row in self._rows]
        failures = hdr.failed_in(attempted, list(map(self._succeeded_in, self._rows)))
        for row, failed in zip(self._rows, failures, strict=True):
            is_outside = row.end_s <= begin_s or row.begin_s >= end_s
            if is_outside and any(first_s < row.end_s and row.begin_s < last_s for first_s, last_s in spans):
                continue
            stated_s = row.service.stated_s if row.service else {}
            if not self._has_percentiles:
                stated_s = {key: value for key, value in stated_s.items() if key in _LIMITS.values()}
            interval = ClientInterval.stated(row.end_s, row.completed - failed, failed, stated_s, begin_s=row.begin_s)
            yield interval.as_response() if self._is_response else interval

    def _succeeded_in(self, row: ClientInterval) -> int:
        """Return the number of operations that succeeded; NoSQLBench reads the metrics one after the other."""
        middle_s = (row.begin_s + row.end_s) / 2
        index = bisect_right(self._succeeded, middle_s, key=_BEGIN_S) - 1
        is_same = index >= 0 and self._succeeded[index].end_s >= middle_s
        return self._succeeded[index].completed if is_same else row.completed
