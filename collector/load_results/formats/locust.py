"""Locust's CSV files: its history and its statistics.

Counts are of all requests, latencies in milliseconds too. The row "Aggregated" is the sum of the others. Locust rounds
percentiles to two significant digits.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from collector.load_results import parsing
from collector.load_results.client_format import Format, SourceFile
from collector.load_results.client_result import ClientInterval, ClientResult, Operation, StatedTotals, failed_note
from collector.load_results.command_output import placed
from collector.load_results.load_span import with_true_edges
from collector.load_results.operation_times import MAX_INTERVALS
from collector.load_results.parsing import MAX_LABELS
from collector.printable import one_line

AGGREGATED = "Aggregated"
MS_PER_S = 1000
# Versions before 1.0 have other names.
_NAMES = {"# requests": "request count", "# failures": "failure count"}


def _columns_of(header: str) -> list[str]:
    """Return the names of a header's columns in lower case. Raises ValueError."""
    names = [name.strip().lower() for name in parsing.csv_fields(header)]
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
        return parsing.checked_count(int(text))

    def number(self, column: str) -> float | None:
        """Return a number; None if it is unknown. Raises ValueError."""
        text = self.values.get(column, "")
        return None if text in ("", "N/A", "None") else parsing.decimal(text)

    def percentiles_s(self) -> dict[float, float]:
        """Return the percentiles in the columns 50%, 66% and so on. Raises ValueError."""
        stated_ms = {column: self.number(column) for column in self.values if column.endswith("%")}
        known_ms = {column: value_ms for column, value_ms in stated_ms.items() if value_ms is not None}
        return parsing.percentiles_s(known_ms, MS_PER_S)


def _operation_names(keys: Collection[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return a name for each type and name of requests: the name, with the type only if it does not suffice."""
    names = Counter(name for _, name in keys)
    texts = {(kind, name): f"{kind} {name}" if names[name] > 1 and kind else name for kind, name in keys}
    return {key: parsing.label_of(text) for key, text in texts.items()}


# History: `locust --csv PREFIX` writes PREFIX_stats_history.csv with about one row per second. The total counts are
# since the run began, so an interval has their differences. The rates and the percentiles in a row are of a sliding
# window of ten seconds or, without `--csv-full-history`, of the whole run: neither belongs to the interval, and they
# are not used. Only the total's median and maximum are. With `--csv-full-history`, there are rows for each type and
# name of requests besides "Aggregated". Times are whole seconds; rows are assumed to be written in the middle of their
# second.

# Versions before 1.0 have the same names as in the statistics.
COUNTS = (("total request count", "total failure count"), ("request count", "failure count"))
MIDDLE_S = 0.5


def read_history(file: SourceFile) -> ClientResult:
    rows = _HistoryRows()
    notes = parsing.read_lines(file.path, rows.add)
    return rows.result(file, notes)


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
            raise ValueError(parsing.ANOTHER_RUN)
        row = _Row(parsing.csv_row(line, self._columns))
        time_s = int(parsing.unix_time_s(row.values["timestamp"]))
        if time_s < self._time_s:
            raise ValueError("the time is before that of the previous row (hint: write each run to a file of its own)")
        self._time_s = time_s
        self._rows += 1
        series = self._aggregated if row.is_aggregated else self._series.setdefault(row.key, _Series())
        if len(self._series) > MAX_LABELS or self._rows > MAX_INTERVALS:
            raise ValueError(f"more than {MAX_LABELS} names of requests, or too many rows")
        series.counts[time_s] = row.count(self._count), row.count(self._failure_count)
        series.last = row

    def result(self, file: SourceFile, notes: list[str]) -> ClientResult:
        """Return the operations, and the totals that Locust states unless it has reset them. Raises ValueError."""
        operations = self._operations()
        notes.append(
            "there are no percentiles of intervals, because Locust's are of a sliding window or of the whole run"
        )
        if self._resets:
            notes.append("Locust reset its statistics; requests between the previous row and the reset are missing")
        notes += failed_note(sum(each.failed for operation in operations for each in operation.intervals), "request")
        notes.append("Locust writes no row when it ends, so the last requests may be missing")
        stated = []
        if self._series and self._aggregated.counts and not self._resets:
            attempted, failed = max(self._aggregated.counts.values())
            stated.append(StatedTotals(attempted=attempted, failed=failed))
        return file.result("Locust", operations, notes, stated)

    def _operations(self) -> list[Operation]:
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
        return [
            with_true_edges(Operation(names[key], tuple(intervals[key]), self._total(each, intervals[key])))
            for key, each in series.items()
        ]

    def _intervals(self, series: _Series, seconds: list[int]) -> list[ClientInterval]:
        """Return the intervals between the given seconds. Raises ValueError."""
        # Counts in the first row are assumed to be those of a second.
        intervals, before = [], (0, 0)
        for begin, end in pairwise([seconds[0] - 1, *seconds]):
            after = series.counts.get(end, before)
            is_reset = after[0] < before[0] or after[1] < before[1]
            self._resets += is_reset
            attempted, failed = after if is_reset else (after[0] - before[0], after[1] - before[1])
            completed = parsing.succeeded(attempted, failed)
            intervals.append(ClientInterval.stated(end + MIDDLE_S, completed, failed, begin_s=begin + MIDDLE_S))
            before = after
        return intervals

    def _total(self, series: _Series, intervals: list[ClientInterval]) -> ClientInterval | None:
        """Return the total, with the median and the maximum that Locust states; None after a reset."""
        if series.last is None or self._resets:
            return None
        attempted, failed = max(series.counts.values())
        completed = parsing.succeeded(attempted, failed)
        stated_s = parsing.checked_percentiles_s(_median_and_maximum_s(series.last))
        return ClientInterval.stated(intervals[-1].end_s, completed, failed, stated_s, begin_s=intervals[0].begin_s)


def _median_and_maximum_s(row: _Row) -> dict[float, float]:
    """Return the median and the maximum of all requests. Raises ValueError."""
    columns = {50.0: "total median response time", 100.0: "total max response time"}
    stated_s = {
        rank: value_ms / MS_PER_S for rank, name in columns.items() if (value_ms := row.number(name)) is not None
    }
    # The median is rounded, and may then exceed the maximum.
    if len(stated_s) > 1 and stated_s[50.0] > stated_s[100.0]:
        del stated_s[50.0]
    return stated_s


# Statistics: `locust --csv PREFIX` writes PREFIX_stats.csv with one row per type and name of requests. There are no
# times; the run is as long as the requests divided by the requests per second. Locust replaces the file every few
# seconds and not when it ends, so the last ones are missing. Counts and percentiles are those of the whole run.


def read_statistics(file: SourceFile) -> ClientResult:
    rows = _StatisticsRows()
    notes = parsing.read_lines(file.path, rows.add)
    return rows.result(file, notes)


class _StatisticsRows:
    def __init__(self) -> None:
        self._columns: list[str] = []
        self._rows: dict[tuple[str, str], _Row] = {}
        self._aggregated: _Row | None = None

    def add(self, line: str) -> None:
        if not self._columns:
            self._columns = _columns_of(line)
            return
        row = _Row(parsing.csv_row(line, self._columns))
        if self._aggregated or row.key in self._rows:
            raise ValueError(parsing.ANOTHER_RUN)
        if row.is_aggregated:
            self._aggregated = row
        elif len(self._rows) > MAX_LABELS:
            raise ValueError(f"more than {MAX_LABELS} names of requests (hint: set `name` in the locustfile)")
        else:
            self._rows[row.key] = row

    def result(self, file: SourceFile, notes: list[str]) -> ClientResult:
        """Return the total of each operation. Raises ValueError."""
        if self._aggregated is None:
            raise ValueError("the row Aggregated is missing (hint: the file may be incomplete)")
        attempted, rate = self._aggregated.count("request count"), self._aggregated.number("requests/s")
        if not attempted or not rate or not self._rows:
            raise ValueError("no requests")
        length_s = parsing.checked_length_s(attempted / rate)
        totals = []
        for row in self._rows.values():
            failed = row.count("failure count")
            completed = parsing.succeeded(row.count("request count"), failed)
            stated_s = parsing.checked_percentiles_s(row.percentiles_s())
            totals.append(placed(ClientInterval.stated(length_s, completed, failed, stated_s), file))
        names = _operation_names(self._rows).values()
        operations = [Operation(name, total=total) for name, total in zip(names, totals, strict=True)]
        notes += failed_note(sum(total.failed for total in totals), "request")
        notes.append("Locust does not update the file when it ends, so the last requests may be missing")
        stated = StatedTotals(attempted=attempted, failed=self._aggregated.count("failure count"))
        return file.result("Locust", operations, notes, [stated], estimated_clock=True)


_HISTORY_SIGN = partial(_begins_with, first=["timestamp", "user count"], required={"type", "name"})
_STATISTICS_SIGN = partial(
    _begins_with, first=["type"], required={"name", "request count", "failure count", "requests/s"}
)
FORMATS = (
    Format("locust-history", _HISTORY_SIGN, read_history),
    Format("locust-stats", _STATISTICS_SIGN, read_statistics),
)
