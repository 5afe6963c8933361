"""One run of cassandra-stress, from the rows and results that it prints.

With `-reporting output-frequency=Ns` (5.0), the total row is printed only in every Nth interval with operations, but
the rows of individual operations, if there are several, in each (StressMetrics.recordInterval). The operations in such
a total row are those since the run began, but its rate, latencies and errors are those of the last interval only. Rows
after the last total row are missing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from collector.load_results.client_format import ClientFormatError
from collector.load_results.client_result import ClientInterval, Operation, StatedTotals, failed_note
from collector.load_results.operation_times import MAX_INTERVALS
from collector.load_results.parsing import MAX_LABELS, clock_s
from collector.printable import count_text

TOTAL = "total"
# The resolution to which times are rounded.
RESOLUTION_S = 0.1
# The factor by which the operations of a row may exceed what its rate allows, since the preceding row may be missing.
MAX_EXCESS = 1.5
# Rows at least this far apart may be those of every Nth interval only; cassandra-stress's intervals last one second.
MIN_SPARSE_S = 1.5
# The fraction by which the rows may differ from the rate in the results, because times are rounded.
MAX_DIFFERENCE = 0.02
_RESULT = re.compile(
    r"\s*(?P<label>[A-Za-z][\w. ]{1,40}?)\s*: +(?P<total>[^ \[]+)(?: [^\[]*)?(?:\[(?P<single>.*)\])?\s*"
)
LATENCIES = {
    "latency median": 50.0,
    "latency 95th percentile": 95.0,
    "latency 99th percentile": 99.0,
    "latency 99.9th percentile": 99.9,
    "latency max": 100.0,
}
"""The percentages of the latencies in the results, by label."""
_NUMBER = r"\d[\d.,'\u00a0\u202f\u2019]{0,25}"
MAX_DIGITS = 18


@dataclass(frozen=True)
class Row:
    """A row: `operations` is counted from the beginning of the run, `errors` and `stated_s` only in the interval."""

    line: int
    time_s: float
    operations: int
    rate_per_s: int | None
    errors: int
    stated_s: Mapping[float, float]


_START = Row(0, 0.0, 0, None, 0, {})


class StressRun:
    """The rows of a run. `name` is the name of its operation if it has only one."""

    def __init__(self, name: str, *, is_sparse: bool = False) -> None:
        """`is_sparse` states that total rows are printed only in every Nth interval."""
        self.totals: list[Row] = []
        self._is_sparse = is_sparse
        self._name = name
        self._singles: dict[str, list[Row]] = {}
        self._pending: dict[str, Row] = {}
        self._results: dict[str, tuple[str, str]] = {}
        # The time of a total row minus that of the rows of individual operations before it.
        self._offset_s = 0.0
        self._has_sums = False

    def add_row(self, name: str, row: Row) -> None:
        """Add a row; the rows of the individual operations come before the total row. Raises ClientFormatError."""
        if name != TOTAL:
            if name in self._pending:
                # There was no total row.
                self._add_sum()
            self._pending[name] = row
            if len(self._pending.keys() | self._singles.keys()) > MAX_LABELS:
                raise ClientFormatError(f"line {row.line}: more than {MAX_LABELS} operations")
            return
        if self._pending:
            self._offset_s = row.time_s - max(single.time_s for single in self._pending.values())
        self._add_total(row)

    def continues_with(self, name: str, row: Row) -> bool:
        """Return whether a row can be the next one of this run."""
        last = (self.totals if name == TOTAL else self._singles.get(name) or [])[-1:]
        return all(row.operations >= before.operations for before in last)

    def end(self) -> None:
        if self._has_sums and self._pending.keys() == self._singles.keys():
            self._add_sum()

    def _add_sum(self) -> None:
        """Add the total of rows after which none was printed; the latencies of several operations are unknown."""
        rows = {**{name: rows[-1] for name, rows in self._singles.items()}, **self._pending}
        now = self._pending.values()
        self._add_total(
            Row(
                max(row.line for row in now),
                round(max(row.time_s for row in now) + self._offset_s, 1),
                sum(row.operations for row in rows.values()),
                sum(row.rate_per_s or 0 for row in now),
                sum(row.errors for row in now),
                {},
            )
        )
        self._has_sums = True

    def _add_total(self, row: Row) -> None:
        """Add a total row, and the rows of individual operations before it. Raises ClientFormatError."""
        if self._pending and not self._singles and self.totals:
            # Until a second kind of operation occurs, cassandra-stress prints only total rows.
            first = max(self._pending, key=lambda name: self._pending[name].time_s)
            self._singles[first] = list(self.totals)
        _append(self.totals, row)
        for single, own in self._pending.items():
            # cassandra-stress counts the time of an operation from its first occurrence; use that of the total row.
            _append(self._singles.setdefault(single, []), replace(own, time_s=row.time_s))
        self._pending.clear()

    def add_result(self, text: str) -> None:
        """Add a line of the results; other lines are ignored."""
        if match := _RESULT.fullmatch(text):
            self._results.setdefault(match["label"].lower(), (match["total"], match["single"] or ""))

    @property
    def completed(self) -> int:
        return self._last.operations

    @property
    def _last(self) -> Row:
        return self.totals[-1] if self.totals else _START

    @property
    def length_s(self) -> float:
        """The run's duration in seconds: the time of its last row or, if it is longer, the stated duration."""
        stated_s = clock_s(self._results.get("total operation time", ("", ""))[0]) or 0
        length_s = max(self._last.time_s, float(stated_s))
        if length_s > MAX_INTERVALS:
            raise ClientFormatError(f"the run lasts {length_s / 86400:.0f} days (hint: check the times in the file)")
        return length_s

    def operations(self) -> list[Operation]:
        """Return the operations, whose times count from the beginning of the run. Raises ClientFormatError."""
        if self.is_sparse:
            return [self._sparse_operation()]
        spans = self._spans()
        series = self._singles or {self._name: self.totals}
        return [
            Operation(name, tuple(_intervals(rows, spans)), self._total(name, rows[-1].operations))
            for name, rows in sorted(series.items())
        ]

    def _spans(self) -> list[tuple[float, float]]:
        """Return the begin and end of all intervals in seconds since the run began, including those without a row."""
        spans: list[tuple[float, float]] = []
        for before, row in pairwise([_START, *self.totals]):
            begin_s = before.time_s
            count, rate = row.operations - before.operations, row.rate_per_s
            if self._has_sums and row.time_s - begin_s >= MIN_SPARSE_S and _contradicts_rate(before, row):
                # Until a second kind of operation occurred, only every Nth total row was printed.
                spans.append((begin_s, row.time_s))
                continue
            _require_consistent(before, row)
            if rate and row.time_s - begin_s > count / (rate - 0.5) + 1.5 * RESOLUTION_S:
                # The row's interval is shorter than the time since the previous row: nothing completed before it.
                stalled_until_s = round(row.time_s - max(count / rate, RESOLUTION_S), 1)
                spans.append((begin_s, stalled_until_s))
                begin_s = stalled_until_s
            spans.append((begin_s, row.time_s))
        if self.exact_length_s > self.totals[-1].time_s:
            spans.append((self.totals[-1].time_s, self.exact_length_s))
        return spans

    @cached_property
    def is_sparse(self) -> bool:
        """Whether the run has total rows of every Nth interval only, and no others.

        If it is not stated, it shows where the operations, errors or duration of rows that are far apart contradict
        their rates or the results.
        """
        rows = [_START, *self.totals]
        if not self.totals:
            return self._rate > 0
        if self._singles or self._is_sparse:
            return self._is_sparse and not self._singles
        # The last interval may be shorter than the others.
        if any(b.time_s - a.time_s < MIN_SPARSE_S for a, b in pairwise(rows[:-1] if len(rows) > 2 else rows)):
            return False
        errors = self._result("total errors", self._name)
        return (
            any(map(_contradicts_rate, rows, self.totals))
            or (errors is not None and _whole(errors) != sum(row.errors for row in self.totals))
            or self._partitions > self.completed
            or not self._has_stated_number(self.completed)
        )

    @property
    def _rate(self) -> int:
        """The stated operations per second; 0 if the results are missing."""
        return _whole(self._results.get("op rate", ("", ""))[0])

    @property
    def _partitions(self) -> int:
        """The stated number of partitions if it is that of operations, as the stated rate shows; otherwise 0."""
        partitions = _whole(self._results.get("total partitions", ("", ""))[0])
        # Rates are rounded, and durations are truncated.
        is_same = (self._rate - 1) * self.length_s <= partitions <= (self._rate + 1) * (self.length_s + 1)
        return partitions if is_same else 0

    def _has_stated_number(self, operations: int) -> bool:
        """Return whether a number of operations agrees with the rate in the results, if there is one."""
        stated = self._rate * self.length_s
        return not stated or abs(stated - operations) <= MAX_DIFFERENCE * stated + self.length_s + self._rate

    def _sparse_operation(self) -> Operation:
        """Return the operation of a run with few rows; the operations after the last row come from the results.

        Errors are spread over the run as the operations are, because it is not known when they occurred.
        """
        ends = [(row.time_s, row.operations) for row in self.totals]
        attempted, length_s = self._attempted, self.exact_length_s
        if length_s > self._last.time_s:
            ends.append((length_s, attempted))
        errors = self._result("total errors", self._name)
        failed = min(_whole(errors) if errors else sum(row.errors for row in self.totals), attempted)
        intervals = []
        for (from_s, before), (until_s, count) in pairwise([(0.0, 0), *ends]):
            lost = failed * count // max(attempted, 1) - failed * before // max(attempted, 1)
            intervals.append(ClientInterval.stated(until_s, count - before - lost, lost, begin_s=from_s))
        return Operation(self._name, tuple(intervals), self._total(self._name, attempted))

    @cached_property
    def _attempted(self) -> int:
        """The number of operations: the stated partitions if that is what they count, or else about the rate's."""
        return max(self._partitions or round(self._rate * self.length_s), self.completed)

    @property
    def exact_length_s(self) -> float:
        """The run's duration; if it ends after the last row, as exactly as the rate states it."""
        if not self._rate:
            return self.length_s
        exact_s = round(min(max(self._attempted / self._rate, self.length_s), self.length_s + 1), 1)
        # Rates are rounded.
        precision_s = 2 * RESOLUTION_S + self.length_s / self._rate
        has_rest = self.is_sparse and self._attempted > self.completed
        return exact_s if has_rest or exact_s > self._last.time_s + precision_s else self.length_s

    def _total(self, name: str, operations: int) -> ClientInterval | None:
        errors = self._result("total errors", name)
        if errors is None:
            return None
        failed = _whole(errors)
        completed = max(operations - failed, 0)
        stated_s = {
            percentage: _number(text) / 1000
            for label, percentage in LATENCIES.items()
            if (text := self._result(label, name)) is not None
        }
        return ClientInterval.stated(self.exact_length_s, completed, failed, stated_s)

    def _result(self, label: str, name: str) -> str | None:
        """Return the text of a number in the results; None if it is missing."""
        total, single = self._results.get(label, ("", ""))
        text: str | None = total
        if self._singles:
            match = re.search(rf"(?:^|, ){re.escape(name)}: ?({_NUMBER})(?: ms)?(?=$|, )", single.lower())
            text = match[1] if match else None
        return text if text and re.fullmatch(_NUMBER, text) else None

    def notes(self) -> list[str]:
        notes = failed_note(sum(row.errors for row in self.totals))
        if self._pending:
            notes.append("the last rows are incomplete and are ignored")
        missing = self.completed - sum(rows[-1].operations for rows in self._singles.values())
        if self._singles and missing:
            notes.append(
                f"the rows of the individual operations differ from the total row by {count_text(missing, 'operation')}"
            )
        if self.is_sparse:
            notes.append(
                "only some rows were printed (output-frequency): latencies are known only of the whole run, errors are "
                "spread evenly over it, and the operations after the last row are computed from the results"
                if self._results
                else "only some rows were printed (output-frequency): errors are known only of the last second before "
                "each row, and operations after the last row are missing"
            )
        if "total errors" not in self._results:
            notes.append("the totals of the run are missing (hint: cassandra-stress prints them when it ends)")
        return notes

    @property
    def stated(self) -> tuple[StatedTotals, ...]:
        """The totals in the results that the rows must agree with."""
        attempted = self._partitions if self._partitions > self.completed else None
        return (StatedTotals(attempted=attempted, attempted_per_s=float(self._rate)),) if self._rate else ()


def _append(rows: list[Row], row: Row) -> None:
    """Append a row, or combine it with the last one if their times are equal. Raises ClientFormatError."""
    last = rows[-1] if rows else _START
    count, length_s = row.operations - last.operations, row.time_s - last.time_s
    if count < 0 or length_s < 0:
        raise ClientFormatError(
            f"line {row.line}: the time or the number of operations is lower than in the previous row"
        )
    if rows and not length_s:
        rows[-1] = Row(row.line, row.time_s, row.operations, None, last.errors + row.errors, {})
    else:
        rows.append(row)


def _require_consistent(before: Row, row: Row) -> None:
    """Raise ClientFormatError if a row has more operations than its rate allows, although no row is missing."""
    if row.rate_per_s is None:
        return
    allowed = MAX_EXCESS * (row.rate_per_s + 1) * (row.time_s - before.time_s + RESOLUTION_S) + 1
    if row.operations - before.operations > allowed:
        raise ClientFormatError(f"line {row.line}: the number of operations contradicts the rate")


def _contradicts_rate(before: Row, row: Row) -> bool:
    """Return whether a row's rate is neither that since the row before nor that of one second after a stall."""
    if row.rate_per_s is None:
        return False
    count, length_s = row.operations - before.operations, row.time_s - before.time_s
    return not any(
        abs(count - row.rate_per_s * active_s) <= 0.5 * active_s + (row.rate_per_s + 1) * 1.5 * RESOLUTION_S + 1
        for active_s in (length_s, 1.0)
    )


def _intervals(rows: Sequence[Row], spans: Sequence[tuple[float, float]]) -> Iterator[ClientInterval]:
    by_time = {row.time_s: (row, row.operations - before.operations) for before, row in pairwise([_START, *rows])}
    for from_s, until_s in spans:
        row, count = by_time.get(until_s, (_START, 0))
        completed = max(count - row.errors, 0)
        yield ClientInterval.stated(until_s, completed, row.errors, row.stated_s, begin_s=from_s)


def _whole(text: str) -> int:
    """Return a whole number, in any locale; 0 if there is none, or one that is impossibly large."""
    digits = re.sub(r"\D", "", text)
    return int(digits or 0) if len(digits) <= MAX_DIGITS else 0


def _number(text: str) -> float:
    """Return a number with one decimal, in any locale."""
    return int(re.sub(r"\D", "", text)) / 10
