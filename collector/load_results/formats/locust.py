"""Locust's CSV files: its history and its statistics.

Counts are of all requests, latencies in milliseconds too. The row "Aggregated" is the sum of the others. Locust rounds
percentiles to two significant digits.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

from collector.load_results.client_format import CommandTimes, Format, Options
from collector.load_results.client_result import (
    ClientInterval,
    ClientResult,
    Latency,
    Operation,
    StatedTotals,
    counted,
    failed_note,
)
from collector.load_results.command_output import placed
from collector.load_results.load_span import with_true_edges
from collector.load_results.operation_times import MAX_INTERVALS
from collector.load_results.parsing import (
    ANOTHER_RUN,
    MAX_LABELS,
    checked_count,
    checked_length_s,
    csv_fields,
    csv_row,
    decimal,
    label_of,
    percentiles_s,
    read_lines,
    stated_latency,
    unix_time_s,
)
from collector.printable import one_line

AGGREGATED = "Aggregated"
MS_PER_S = 1000
# Versions before 1.0 have other names.
_NAMES = {"# requests": "request count", "# failures": "failure count"}


def _columns_of(header: str) -> list[str]:
    """Return the names of a header's columns in lower case. Raises ValueError."""
    names = [name.strip().lower() for name in csv_fields(header)]
    return [_NAMES.get(name, name) for name in names]


def _begins_with(text: str, first: list[str], required: set[str]) -> bool:
    """Return whether a text begins with a header that has these first columns and the required ones."""
    try:
        columns = _columns_of(text.lstrip().partition("\n")[0].rstrip("\r"))
    except ValueError:
        return False
    return columns[: len(first)] == first and set(columns) >= required


@dataclass(frozen=True)
class _Row:
    """A row by column. `key` is the type and the name of the requests."""

    values: Mapping[str, str]

    @property
    def key(self) -> tuple[str, str]:
        return self.values.get("type", ""), self.values.get("name", "")

    @property
    def is_aggregated(self) -> bool:
        return self.key[1] == AGGREGATED and self.key[0] in ("", "None")

    def count(self, column: str) -> int:
        text = self.values.get(column, "")
        if not re.fullmatch(r"\d{1,15}", text):
            raise ValueError(f"{column} is not a number of requests: {one_line(text)[:40]}")
        return checked_count(int(text))

    def number(self, column: str) -> float | None:
        """Return a number; None if it is unknown. Raises ValueError."""
        text = self.values.get(column, "")
        return None if text in ("", "N/A", "None") else decimal(text)

    def percentiles(self) -> Latency | None:
        """Return the percentiles in the columns 50%, 66% and so on; None if there are none. Raises ValueError."""
        stated_ms = {column: self.number(column) for column in self.values if column.endswith("%")}
        known_ms = {column: value_ms for column, value_ms in stated_ms.items() if value_ms is not None}
        return stated_latency(percentiles_s(known_ms, MS_PER_S))


def _operation_names(keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return a name for each type and name of requests: the name, with the type only if it does not suffice."""
    keys = list(keys)
    names = [name for _, name in keys]
    return {(kind, name): label_of(f"{kind} {name}" if names.count(name) > 1 and kind else name) for kind, name in keys}


# History: `locust --csv PREFIX` writes PREFIX_stats_history.csv with about one row per second. The total counts are
# since the run began, so an interval has their differences. The rates and the percentiles in a row are of a sliding
# window of ten seconds or, without `--csv-full-history`, of the whole run: neither belongs to the interval, and they
# are not used. Only the total's median and maximum are. With `--csv-full-history`, there are rows for each type and
# name of requests besides "Aggregated". Times are whole seconds; rows are assumed to be written in the middle of their
# second.

HISTORY = "locust-history"
# Versions before 1.0 have the same names as in the statistics.
COUNTS = (("total request count", "total failure count"), ("request count", "failure count"))
MIDDLE_S = 0.5


def read_history(path: Path, _times: CommandTimes, _options: Options) -> ClientResult:
    rows = _HistoryRows()
    notes = read_lines(path, rows.add)
    operations = rows.operations()
    notes += rows.notes(operations)
    return ClientResult(HISTORY, "Locust", path.name, operations, notes=tuple(notes), stated=rows.stated())


@dataclass
class _Series:
    """The rows of one type and name of requests: cumulative counts by time, and the last row."""

    counts: dict[int, tuple[int, int]] = field(default_factory=dict)
    last: _Row | None = None


class _HistoryRows:
    """The rows of a file by type and name of requests; those of all requests are in `aggregated`."""

    def __init__(self) -> None:
        self._header = ""
        self._columns: list[str] = []
        self._count, self._failure_count = COUNTS[0]
        self._aggregated = _Series()
        self._series: dict[tuple[str, str], _Series] = {}
        self._time_s = self._rows = self._resets = 0

    def add(self, line: str) -> None:
        if not self._columns:
            self._header, self._columns = line, _columns_of(line)
            known = [names for names in COUNTS if set(names) <= set(self._columns)]
            if not known:
                raise ValueError("the columns with the counts of requests are missing")
            self._count, self._failure_count = known[0]
            return
        if line == self._header:
            raise ValueError(ANOTHER_RUN)
        row = _Row(csv_row(line, self._columns))
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
        series = self._series or {("", ""): self._aggregated}
        seconds = sorted({second for each in (self._aggregated, *series.values()) for second in each.counts})
        if not seconds:
            raise ValueError("no rows")
        if (seconds[-1] - seconds[0]) > MAX_INTERVALS:
            raise ValueError("the rows are more than 14 days apart (hint: check the times in the file)")
        names = _operation_names(series)
        intervals = {key: self._intervals(each, seconds) for key, each in series.items()}
        busy = [any(each.attempted for each in second) for second in zip(*intervals.values(), strict=True)]
        if not any(busy):
            raise ValueError("no requests")
        # Before the first request, users are started.
        intervals = {key: of_key[busy.index(True) :] for key, of_key in intervals.items()}
        return tuple(
            with_true_edges(Operation(names[key], tuple(intervals[key]), self._total(each, intervals[key])))
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


def _latency(row: _Row) -> Latency | None:
    """Return the median and the maximum of all requests. Raises ValueError."""
    columns = {50.0: "total median response time", 100.0: "total max response time"}
    stated_s = {
        rank: value_ms / MS_PER_S for rank, name in columns.items() if (value_ms := row.number(name)) is not None
    }
    # The median is rounded, and may then exceed the maximum.
    if len(stated_s) > 1 and stated_s[50.0] > stated_s[100.0]:
        del stated_s[50.0]
    return stated_latency(stated_s)


# Statistics: `locust --csv PREFIX` writes PREFIX_stats.csv with one row per type and name of requests. There are no
# times; the run is as long as the requests divided by the requests per second. Locust replaces the file every few
# seconds and not when it ends, so the last ones are missing. Counts and percentiles are those of the whole run.

STATISTICS = "locust-stats"


def read_statistics(path: Path, times: CommandTimes, _options: Options) -> ClientResult:
    rows = _StatisticsRows()
    notes = read_lines(path, rows.add)
    totals = rows.totals()
    operations = tuple(Operation(name, total=placed(total, path, times)) for name, total in totals)
    notes += failed_note(sum(total.failed for _, total in totals), "request")
    notes.append("Locust does not update the file when it ends, so the last requests may be missing")
    return ClientResult(STATISTICS, "Locust", path.name, operations, True, tuple(notes), stated=rows.stated())


class _StatisticsRows:
    def __init__(self) -> None:
        self._columns: list[str] = []
        self._rows: dict[tuple[str, str], _Row] = {}
        self._aggregated: _Row | None = None

    def add(self, line: str) -> None:
        if not self._columns:
            self._columns = _columns_of(line)
            return
        row = _Row(csv_row(line, self._columns))
        if self._aggregated or row.key in self._rows:
            raise ValueError(ANOTHER_RUN)
        if row.is_aggregated:
            self._aggregated = row
        elif len(self._rows) > MAX_LABELS:
            raise ValueError(f"more than {MAX_LABELS} names of requests (hint: set `name` in the locustfile)")
        else:
            self._rows[row.key] = row

    def totals(self) -> list[tuple[str, ClientInterval]]:
        """Return the name and the total of each operation. Times count from the run's beginning. Raises ValueError."""
        if self._aggregated is None:
            raise ValueError("the row Aggregated is missing (hint: the file may be incomplete)")
        attempted, rate = self._aggregated.count("request count"), self._aggregated.number("requests/s")
        if not attempted or not rate or not self._rows:
            raise ValueError("no requests")
        length_s = checked_length_s(attempted / rate)
        names = _operation_names(self._rows)
        totals = []
        for key, row in self._rows.items():
            failed = row.count("failure count")
            completed = row.count("request count") - failed
            totals.append((names[key], counted(0.0, length_s, completed, failed, row.percentiles())))
        return totals

    def stated(self) -> tuple[StatedTotals, ...]:
        if self._aggregated is None:
            return ()
        attempted, failed = (self._aggregated.count(column) for column in ("request count", "failure count"))
        return (StatedTotals(attempted=attempted, failed=failed),)


_HISTORY_SIGN = partial(_begins_with, first=["timestamp", "user count"], required={"type", "name"})
_STATISTICS_SIGN = partial(
    _begins_with, first=["type"], required={"name", "request count", "failure count", "requests/s"}
)
FORMATS = (
    Format(HISTORY, _HISTORY_SIGN, read_history),
    Format(STATISTICS, _STATISTICS_SIGN, read_statistics),
)
