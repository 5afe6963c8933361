"""CSV files with one row per operation, or one row per interval: see docs/client-results.md."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from collector.load_results import parsing
from collector.load_results.client_format import ClientFormatError, Format, SourceFile
from collector.load_results.client_result import NS_PER_S, ClientInterval, ClientResult, Operation, applicable
from collector.load_results.load_span import with_true_edges
from collector.load_results.operation_times import MAX_INTERVALS, SECONDS_PER_DAY, OperationTimes, require_near
from collector.load_results.result_checks import require_no_overlap, tolerance_s
from collector.printable import count_text, one_line

TIMES = ("time_s", "time")
UNITS_NS = {"s": 10**9, "ms": 10**6, "us": 10**3}

# Numbers with a decimal point or a decimal comma; those that could be read in two ways are refused.

_NUMBER = re.compile(r"[0-9]{1,19}(?:(?P<mark>[.,])[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?")
# The mark in such a number may also be a thousands separator.
_DOUBTFUL = re.compile(r"[1-9][0-9]{0,2}[.,][0-9]{3}")
_MIN_DIGITS_OF_THOUSANDS = 4


class DecimalMarks:
    """The decimal mark of a file, deduced from its numbers.

    A file that separates columns by commas has decimal points. In other files, a number such as 1,234 is a decimal
    number only if another number shows that the file does not separate thousands.
    """

    def __init__(self, delimiter: str) -> None:
        self._has_comma_columns = delimiter == ","
        self._mark = ""
        self._doubtful = ""
        self._has_no_thousands = False

    def number(self, text: str) -> float:
        """Return a number that is not negative. Raises ValueError."""
        match = _NUMBER.fullmatch(text)
        if match is None:
            raise ValueError(f"not a number: {one_line(text) or '(empty)'}")
        mark = match["mark"]
        if mark == "," and self._has_comma_columns:
            raise ValueError(
                f"a comma in the number {text} (hint: omit it if it separates thousands; with decimal commas, separate "
                "columns by semicolons)"
            )
        if mark and self._mark not in ("", mark):
            raise ValueError(f"both decimal points and decimal commas in one file: {text}")
        self._mark = mark or self._mark
        if _DOUBTFUL.fullmatch(text) and not self._has_comma_columns:
            self._doubtful = self._doubtful or text
        elif mark or len(text) >= _MIN_DIGITS_OF_THOUSANDS:
            self._has_no_thousands = True
        return float(text.replace(",", "."))

    def check(self) -> None:
        """Raise ClientFormatError if the numbers of the file could be read in two ways."""
        if self._doubtful and not self._has_no_thousands:
            raise ClientFormatError(
                f"ambiguous number {self._doubtful}: decimal mark or thousands separator (hint: add or remove decimals)"
            )


# One row per operation.

LATENCY = re.compile(r"(?P<kind>latency|response)_(?P<unit>s|ms|us)")
SUCCESS_COLUMNS = ("ok", "success")
OPERATION_COLUMNS = ("operation", "error", *SUCCESS_COLUMNS)
_SUCCEEDED = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
FAILED = "failed"
"""The kind of an error that a file does not name."""
# Some programs write one of these as the error of an operation that succeeded.
_NOT_ERRORS = ("0", "false")


def _has_succeeded(column: str, value: str) -> bool:
    if value.lower() not in _SUCCEEDED:
        raise ValueError(f"the column {column} is {value or 'empty'} (hint: use true or false)")
    return _SUCCEEDED[value.lower()]


class OperationRows:
    """Operations by the second in which they ended. Raises ValueError if columns are missing."""

    def __init__(self, columns: Sequence[str], numbers: DecimalMarks) -> None:
        self._numbers = numbers
        self._latencies: dict[str, tuple[str, int]] = {}
        for column in columns:
            if match := LATENCY.fullmatch(column):
                if match["kind"] in self._latencies:
                    raise ValueError(f"more than one column {match['kind']}_…")
                self._latencies[match["kind"]] = column, UNITS_NS[match["unit"]]
        if not self._latencies:
            raise ValueError("missing column: latency_ms, latency_us, latency_s or response_ms")
        self.known = {*OPERATION_COLUMNS, *(column for column, _ in self._latencies.values())}
        self._times = {kind: OperationTimes() for kind in self._latencies}

    def add(self, row: Mapping[str, str], end_s: float) -> None:
        error = row.get("error", "")
        if error.lower() in _NOT_ERRORS:
            raise ValueError(f"the column error is {error} (hint: leave it empty for operations that succeeded)")
        name = row.get("operation", "")
        if not all(_has_succeeded(column, row[column]) for column in SUCCESS_COLUMNS if column in row):
            error = error or FAILED
        if error:
            for times in self._times.values():
                times.add_error(name, end_s, error)
            return
        durations_ns = {
            kind: parsing.latency_ns(self._numbers.number(row[column]), unit_ns)
            for kind, (column, unit_ns) in self._latencies.items()
        }
        longest_s = max(durations_ns.values()) / NS_PER_S
        for kind, duration_ns in durations_ns.items():
            # All kinds must have the same intervals, so their times must be the same.
            self._times[kind].add_time(end_s, longest_s)
            self._times[kind].add_counts(name, int(end_s), {duration_ns: 1})

    def notes(self) -> list[str]:
        return next(iter(self._times.values())).notes("row")

    def operations(self) -> tuple[Operation, ...]:
        # All kinds have the same operations and intervals; OperationTimes returns every latency as a service time.
        kinds = {kind: times.operations() for kind, times in self._times.items()}
        if "response" not in kinds:
            return kinds["latency"]
        responses = [operation.changed(ClientInterval.as_response) for operation in kinds["response"]]
        return tuple(map(_with_service, responses, kinds["latency"]) if "latency" in kinds else responses)


def _with_service(responses: Operation, services: Operation) -> Operation:
    pairs = zip(responses.intervals, services.intervals, strict=True)
    return replace(responses, intervals=tuple(replace(one, service=other.service) for one, other in pairs))


# One row per interval (and operation).

PERCENTILE = re.compile(r"(?P<response>response_)?p(?P<percentage>[0-9]{1,3}(?:\.[0-9]{1,6})?)_(?P<unit>s|ms|us)")
REQUIRED = ("duration_s", "operations")
INTERVAL_COLUMNS = (*REQUIRED, "operation", "errors")
_COUNT = re.compile(r"([0-9]{1,12})(?:\.0)?")


class IntervalRows:
    """Intervals by operation. Raises ValueError if columns are missing."""

    def __init__(self, columns: Sequence[str], numbers: DecimalMarks) -> None:
        self._names = parsing.Labels()
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
        self.known = {*INTERVAL_COLUMNS, *(column for column, _ in self._percentiles.values())}

    def add(self, row: Mapping[str, str], begin_s: float) -> None:
        length_s = self._numbers.number(row["duration_s"])
        if not 0 < length_s <= SECONDS_PER_DAY:
            raise ValueError(f"invalid interval duration: {length_s:g} s")
        completed, failed = _count(row["operations"]), _count(row.get("errors") or "0")
        response_s, service_s = (self._stated_s(row, kind) for kind in ("response", "service"))
        self._count += 1
        if self._count > MAX_INTERVALS:
            raise ValueError(f"more than {MAX_INTERVALS} intervals")
        interval = ClientInterval.stated(begin_s + length_s, completed, failed, service_s, response_s, begin_s)
        self._intervals[self._names.of(row.get("operation", ""))].append(interval)

    def _stated_s(self, row: Mapping[str, str], kind: str) -> Mapping[float, float]:
        stated_s = {
            percentage: self._numbers.number(row[column]) * unit_ns / NS_PER_S
            for (kind_of_column, percentage), (column, unit_ns) in self._percentiles.items()
            if kind_of_column == kind and row[column]
        }
        return parsing.checked_percentiles_s(stated_s)

    def notes(self) -> list[str]:
        return []

    def operations(self) -> tuple[Operation, ...]:
        if self._names.omitted:
            raise ClientFormatError("too many operations (hint: use fewer operation names)")
        intervals = [interval for of_name in self._intervals.values() for interval in of_name]
        if not intervals:
            return ()
        require_near(min(row.begin_s for row in intervals), max(row.end_s for row in intervals))
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
    for interval, following in pairwise(intervals):
        require_no_overlap(name, interval, following)
        yield replace(interval, end_s=min(interval.end_s, following.begin_s))
        if following.begin_s - interval.end_s > tolerance_s(interval, following):
            yield ClientInterval(interval.end_s, following.begin_s, 0)
    yield intervals[-1]


# Both forms.


def recognises(text: str) -> bool:
    line = text.lstrip().partition("\n")[0]
    try:
        columns = set(_columns(line, _delimiter(line)))
    except ValueError:
        return False
    has_values = any(map(LATENCY.fullmatch, columns)) or columns >= set(REQUIRED)
    if "time_s" in columns:
        return has_values or not columns.isdisjoint((*OPERATION_COLUMNS, *INTERVAL_COLUMNS))
    return "time" in columns and has_values


def read(file: SourceFile) -> ClientResult:
    rows = _File()
    notes = parsing.read_lines(file.path, rows.add)
    return rows.result(file, notes)


class _File:
    def __init__(self) -> None:
        self._header = ""
        self._headers = 0

    def add(self, line: str) -> None:
        if not self._header:
            self._begin(line)
        if line == self._header:
            # Files that were concatenated have several headers.
            self._headers += 1
            return
        fields = parsing.csv_fields(line, self._delimiter)
        if len(fields) != len(self._columns):
            hint = " (hint: if numbers have decimal commas, separate columns with semicolons)"
            raise ValueError(f"{len(fields)} fields instead of {len(self._columns)}{hint * (self._delimiter == ',')}")
        row = {column: field.strip() for column, field in zip(self._columns, fields, strict=True)}
        self._rows.add(row, self._time_s(row))

    def _begin(self, header: str) -> None:
        self._delimiter = _delimiter(header)
        self._columns = _columns(header, self._delimiter)
        present = [column for column in TIMES if column in self._columns]
        if len(present) != 1:
            raise ValueError("missing column: time_s or time" if not present else "both time_s and time are present")
        self._time_column = present[0]
        self._numbers = DecimalMarks(self._delimiter)
        has_intervals = not set(self._columns).isdisjoint(REQUIRED)
        form = IntervalRows if has_intervals else OperationRows
        self._rows = form(self._columns, self._numbers)
        known = {*self._rows.known, self._time_column}
        if repeated := sorted({column for column in known if self._columns.count(column) > 1}):
            raise ValueError(f"duplicate columns: {', '.join(repeated)}")
        self._unknown = [column for column in self._columns if column not in known]
        self._header = header

    def _time_s(self, row: dict[str, str]) -> float:
        text = row[self._time_column]
        if self._time_column == "time":
            return parsing.rfc3339_s(text)
        return parsing.checked_time_s(self._numbers.number(text))

    def result(self, file: SourceFile, notes: list[str]) -> ClientResult:
        operations = self._rows.operations() if self._header else ()
        if not operations:
            raise ClientFormatError("no rows")
        self._numbers.check()
        further = {
            f"ignored columns: {one_line(', '.join(self._unknown))}": self._unknown,
            f"the file has {count_text(self._headers, 'header')}": self._headers > 1,
        }
        return file.result("CSV file", operations, [*notes, *applicable(further), *self._rows.notes()])


def _delimiter(header: str) -> str:
    return ";" if ";" in header else ","


def _columns(header: str, delimiter: str) -> Sequence[str]:
    return [column.strip().lower() for column in parsing.csv_fields(header, delimiter)]


FORMATS = (Format("csv", recognises, read),)
