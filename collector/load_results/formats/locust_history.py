"""Locust's history (`locust --csv PREFIX` writes PREFIX_stats_history.csv): about one row per second, with counts.

The total counts are since the run began, so an interval has their differences. The rates and the percentiles in a row
are of a sliding window of ten seconds or, without `--csv-full-history`, of the whole run: neither belongs to the
interval, and they are not used. Only the total's median and maximum are. With `--csv-full-history`, there are rows for
each type and name of requests besides "Aggregated". Times are whole seconds; rows are assumed to be written in the
middle of their second.
"""

from itertools import pairwise
from pathlib import Path

from collector.load_results.client_format import CommandTimes, Format, Options
from collector.load_results.client_latency import Latency
from collector.load_results.client_result import (
    ClientInterval,
    ClientResult,
    Operation,
    StatedTotals,
    counted,
    failed_note,
)
from collector.load_results.load_span import with_true_edges
from collector.load_results.locust_rows import MS_PER_S, LocustRow, columns_of, operation_names, row_of
from collector.load_results.operation_times import MAX_INTERVALS
from collector.load_results.parsing.field_values import stated_latency, unix_time_s
from collector.load_results.parsing.labels import MAX_LABELS
from collector.load_results.parsing.text_lines import ANOTHER_RUN, read_lines

NAME = "locust-history"
REQUIRED = {"timestamp", "type", "name"}
# Versions before 1.0 have the same names as in the statistics.
COUNTS = (("total request count", "total failure count"), ("request count", "failure count"))
MIDDLE_S = 0.5


def recognises(text: str) -> bool:
    try:
        columns = columns_of(text.lstrip().partition("\n")[0].rstrip("\r"))
    except ValueError:
        return False
    return set(columns) >= REQUIRED and columns[:2] == ["timestamp", "user count"]


def read(path: Path, _times: CommandTimes, _options: Options) -> ClientResult:
    rows = _Rows()
    notes = read_lines(path, rows.add)
    operations = rows.operations()
    return ClientResult(
        NAME, "Locust", path.name, operations, notes=(*notes, *rows.notes(operations)), stated=rows.stated()
    )


FORMATS = (Format(NAME, recognises, read),)


class _Series:
    """The rows of one type and name of requests: cumulative counts by time, and the last row."""

    def __init__(self) -> None:
        self.counts: dict[int, tuple[int, int]] = {}
        self.last: LocustRow | None = None


class _Rows:
    """The rows of a file by type and name of requests; those of all requests are in `aggregated`."""

    def __init__(self) -> None:
        self._header = ""
        self._columns: list[str] = []
        self._count, self._failure_count = COUNTS[0]
        self._aggregated = _Series()
        self._series: dict[tuple[str, str], _Series] = {}
        self._time_s = self._rows = self._resets = 0

    def add(self, line: str) -> None:
        """Add a line. Raises ValueError."""
        if not self._columns:
            self._header, self._columns = line, list(columns_of(line))
            known = [names for names in COUNTS if set(names) <= set(self._columns)]
            if not known:
                raise ValueError("the columns with the counts of requests are missing")
            self._count, self._failure_count = known[0]
            return
        if line == self._header:
            raise ValueError(ANOTHER_RUN)
        row = row_of(line, self._columns)
        time_s = int(unix_time_s(row.values["timestamp"]))
        if time_s < self._time_s:
            raise ValueError("the time is before that of the previous row (hint: write each run to a file of its own)")
        self._time_s = time_s
        self._rows += 1
        series = self._aggregated if row.is_aggregated else self._series.setdefault(row.key, _Series())
        if len(self._series) > MAX_LABELS or self._rows > MAX_INTERVALS:
            raise ValueError(f"more than {MAX_LABELS} names of requests, or too many rows")
        series.counts[time_s] = row.count(self._count), row.count(self._failure_count)
        series.last = row

    def operations(self) -> tuple[Operation, ...]:
        """Return the operations. Raises ValueError."""
        series = self._series or {("", ""): self._aggregated}
        seconds = sorted({second for each in (self._aggregated, *series.values()) for second in each.counts})
        if not seconds:
            raise ValueError("no rows")
        if (seconds[-1] - seconds[0]) > MAX_INTERVALS:
            raise ValueError("the rows are more than 14 days apart (hint: check the times in the file)")
        names = operation_names(series)
        intervals = {key: self._intervals(each, seconds) for key, each in series.items()}
        busy = [index for of_key in intervals.values() for index, each in enumerate(of_key) if _attempted(each)]
        if not busy:
            raise ValueError("no requests")
        # Before the first request, users are started.
        first = min(busy)
        return tuple(
            with_true_edges(
                Operation(names[key], tuple(intervals[key][first:]), self._total(each, intervals[key][first:]))
            )
            for key, each in series.items()
        )

    def _intervals(self, series: _Series, seconds: list[int]) -> list[ClientInterval]:
        """Return the intervals between the given seconds. Raises ValueError."""
        # Counts in the first row are assumed to be those of a second.
        intervals, before = [], (0, 0)
        for begin, end in pairwise([seconds[0] - 1, *seconds]):
            after = series.counts.get(end, before)
            is_reset = after[0] < before[0] or after[1] < before[1]
            self._resets += is_reset
            attempted, failed = after if is_reset else (after[0] - before[0], after[1] - before[1])
            intervals.append(counted(begin + MIDDLE_S, end + MIDDLE_S, attempted - failed, failed))
            before = after
        return intervals

    def _total(self, series: _Series, intervals: list[ClientInterval]) -> ClientInterval | None:
        """Return the total, with the median and the maximum that Locust states; None after a reset."""
        if series.last is None or self._resets:
            return None
        attempted, failed = max(series.counts.values())
        begin_s, end_s = intervals[0].begin_s, intervals[-1].end_s
        return counted(begin_s, end_s, attempted - failed, failed, _latency(series.last))

    def stated(self) -> tuple[StatedTotals, ...]:
        if not self._series or not self._aggregated.counts or self._resets:
            return ()
        attempted, failed = max(self._aggregated.counts.values())
        return (StatedTotals(attempted=attempted, failed=failed),)

    def notes(self, operations: tuple[Operation, ...]) -> list[str]:
        notes = ["there are no percentiles of intervals, because Locust's are of a sliding window or of the whole run"]
        if self._resets:
            notes.append("Locust reset its statistics; requests between the previous row and the reset are missing")
        failed = sum(interval.failed for operation in operations for interval in operation.intervals)
        notes += failed_note(failed, "request")
        notes.append("Locust writes no row when it ends, so the last requests may be missing")
        return notes


def _attempted(interval: ClientInterval) -> int:
    return interval.completed + interval.failed


def _latency(row: LocustRow) -> Latency | None:
    """Return the median and the maximum of all requests. Raises ValueError."""
    stated_s = {}
    for rank, column in ((50.0, "total median response time"), (100.0, "total max response time")):
        if (value_ms := row.number(column)) is not None:
            stated_s[rank] = value_ms / MS_PER_S
    # The median is rounded, and may then exceed the maximum.
    if len(stated_s) > 1 and stated_s[50.0] > stated_s[100.0]:
        del stated_s[50.0]
    return stated_latency(stated_s) if stated_s else None
