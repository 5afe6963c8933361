"""The form of the generic CSV with one row per interval (and operation)."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from collector.load_results.client_format import ClientFormatError
from collector.load_results.client_latency import NS_PER_S, Latency
from collector.load_results.client_result import ClientInterval, Operation
from collector.load_results.generic.csv_operations import UNITS_NS
from collector.load_results.generic.decimal_marks import DecimalMarks
from collector.load_results.load_span import with_true_edges
from collector.load_results.operation_times import MAX_INTERVALS, SECONDS_PER_DAY
from collector.load_results.parsing.field_values import stated_latency
from collector.load_results.parsing.labels import Labels
from collector.load_results.sound_results import require_no_overlap, tolerance_s
from collector.printable import one_line

PERCENTILE = re.compile(r"(?P<response>response_)?p(?P<percentage>[0-9]{1,3}(?:\.[0-9]{1,6})?)_(?P<unit>s|ms|us)")
REQUIRED = ("duration_s", "operations")
COLUMNS = (*REQUIRED, "operation", "errors")
_COUNT = re.compile(r"([0-9]{1,12})(?:\.0)?")


class IntervalRows:
    """Intervals by operation. Raises ValueError if columns are missing."""

    def __init__(self, columns: Sequence[str], numbers: DecimalMarks) -> None:
        self._names = Labels()
        self._numbers = numbers
        self._count = 0
        self._intervals: defaultdict[str, list[ClientInterval]] = defaultdict(list)
        if missing := [column for column in REQUIRED if column not in columns]:
            raise ValueError(f"missing column: {', '.join(missing)}")
        self._percentiles: dict[tuple[str, float], tuple[str, int]] = {}
        for column in columns:
            if match := PERCENTILE.fullmatch(column):
                key = "response" if match["response"] else "service", float(match["percentage"])
                if key in self._percentiles or key[1] > 100:
                    raise ValueError(f"invalid or repeated percentile: {column}")
                self._percentiles[key] = column, UNITS_NS[match["unit"]]
        self.known = {*COLUMNS, *(column for column, _ in self._percentiles.values())}

    def add(self, row: Mapping[str, str], begin_s: float) -> None:
        """Add an interval. Raises ValueError."""
        length_s = self._numbers.number(row["duration_s"])
        if not 0 < length_s <= SECONDS_PER_DAY:
            raise ValueError(f"invalid interval duration: {length_s:g} s")
        completed, failed = _count(row["operations"]), _count(row.get("errors") or "0")
        response, service = self._latency(row, "response"), self._latency(row, "service")
        self._count += 1
        if self._count > MAX_INTERVALS:
            raise ValueError(f"more than {MAX_INTERVALS} intervals")
        interval = ClientInterval(begin_s, begin_s + length_s, completed, {"": failed} if failed else {})
        if completed:
            interval = replace(interval, response=response, service=service)
        self._intervals[self._names.of(row.get("operation", ""))].append(interval)

    def _latency(self, row: Mapping[str, str], kind: str) -> Latency | None:
        stated_s = {
            percentage: self._numbers.number(row[column]) * unit_ns / NS_PER_S
            for (kind_of_column, percentage), (column, unit_ns) in self._percentiles.items()
            if kind_of_column == kind and row[column]
        }
        return stated_latency(stated_s) if stated_s else None

    def notes(self) -> list[str]:
        return []

    def operations(self) -> tuple[Operation, ...]:
        """Return the operations by name. Raises ClientFormatError."""
        if self._names.omitted:
            raise ClientFormatError("too many operations (hint: use fewer operation names)")
        intervals = [interval for of_name in self._intervals.values() for interval in of_name]
        if not intervals:
            return ()
        days = (max(row.end_s for row in intervals) - min(row.begin_s for row in intervals)) / SECONDS_PER_DAY
        if days > MAX_INTERVALS / SECONDS_PER_DAY:
            raise ClientFormatError(
                f"the intervals are up to {days:.0f} days apart (hint: check the times in the file)"
            )
        return tuple(
            with_true_edges(Operation(name, tuple(_without_gaps(name, sorted(of_name, key=lambda row: row.begin_s)))))
            for name, of_name in sorted(self._intervals.items())
        )


def _count(text: str) -> int:
    match = _COUNT.fullmatch(text)
    if match is None:
        raise ValueError(f"not a whole number: {one_line(text) or '(empty)'}")
    return int(match[1])


def _without_gaps(name: str, intervals: Sequence[ClientInterval]) -> Iterator[ClientInterval]:
    """Yield the intervals, including those without a row because nothing completed. Raises ClientFormatError."""
    for interval, following in zip(intervals, [*intervals[1:], None], strict=True):
        if following is None:
            yield interval
            return
        gap_s = following.begin_s - interval.end_s
        require_no_overlap(name, interval, following)
        yield replace(interval, end_s=min(interval.end_s, following.begin_s))
        if gap_s > tolerance_s(interval, following):
            yield ClientInterval(interval.end_s, following.begin_s, 0)
