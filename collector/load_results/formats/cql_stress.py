"""What cql-stress prints as its frontend for cassandra-stress (`cql-stress-cassandra-stress`).

A row has the operations since the run began, the time since the run began, and the rate, the failed operations and the
percentiles of the interval. Operations include failed ones, the latencies do not. There is no row for the time after
the last full interval; the results have its operations. Latencies are response times if the option `fixed` is given,
which the settings state.
"""

import re
from collections.abc import Mapping, Sequence

from collector.load_results.client_format import ClientFormatError, Format, ResultClock, SourceFile
from collector.load_results.client_result import ClientInterval, ClientResult
from collector.load_results.command_output import OutputLine, read_output, result_of_rows, run_notes
from collector.load_results.parsing import clock_s, decimal, label_of, stated_latency_s, whole
from collector.load_results.stress_run import LATENCIES

NAME = "cql-stress"
MS = 1e-3
_HEADER = re.compile(r"^[ \t]*total ops\s*,\s*op/s,\s*mean,", re.MULTILINE)
_ROW = re.compile(r"\s*(\d{1,18})((?:,\s*(?:\d{1,15}(?:\.\d+)?|NaN|inf))+)")
_BEGIN_OF_ROW = re.compile(r"\s*\d+,\s*(?:\d|NaN|inf)")
_RESULT = re.compile(r"(?P<label>[A-Z][\w. ]{1,40}?)\s*: +(?P<value>[\d.:]+|NaN|inf)(?: (?:op/s|ms))?")
_FIXED = re.compile(r"\s*Coordinated-Omission-Fixed latencies: true")
_KIND = re.compile(r"\s*Type: (\w+)")
_PERCENTAGES = {"med": 50.0, ".95": 95.0, ".99": 99.0, ".999": 99.9, "max": 100.0}


def read(file: SourceFile) -> ClientResult:
    run = _LastRun()
    read_output(file.path, run.add)
    if not (run.rows or run.results):
        raise ClientFormatError("the last run has no rows")
    return result_of_rows(file, NAME, run.name, run.rows, run.total(), run.notes())


FORMATS = (Format(NAME, _HEADER.search, read, follows_output=True, clock=ResultClock.STEADY),)


class _LastRun:
    """The last run of a log: its rows, and the texts of its results by label in lower case."""

    def __init__(self) -> None:
        self._runs = 0
        # What the settings state about the next run.
        self._next_name, self._next_is_fixed = "", False
        self._is_cut = False
        self._begin(())

    def _begin(self, columns: Sequence[str]) -> None:
        self.name, self._is_fixed = self._next_name, self._next_is_fixed
        self.rows: list[ClientInterval] = []
        self.results: dict[str, str] = {}
        self._columns = columns
        self._operations = 0
        self._has_results = False

    def add(self, line: OutputLine) -> None:
        self._is_cut = not line.is_whole
        if _HEADER.match(line.text):
            columns = [column.strip() for column in line.text.split(",")]
            if not {"total ops", "time"} <= set(columns):
                raise ValueError("the header has no total ops or no time")
            self._runs += 1
            self._begin(columns)
        elif self._has_results:
            match = _RESULT.fullmatch(line.text)
            if match and line.is_whole:
                self.results.setdefault(match["label"].lower(), match["value"])
        elif self._columns and line.text == "Results:":
            self._has_results = True
        elif self._columns and _BEGIN_OF_ROW.match(line.text):
            self._add_row(line)
        self._add_setting(line.text)

    def _add_setting(self, text: str) -> None:
        if "Stress Settings" in text:
            self._next_is_fixed, self._next_name = False, ""
        elif _FIXED.fullmatch(text):
            self._next_is_fixed = True
        elif match := _KIND.fullmatch(text):
            self._next_name = "" if match[1].lower() in ("mixed", "user") else label_of(match[1].lower())

    def _add_row(self, line: OutputLine) -> None:
        fields = [field.strip() for field in line.text.split(",")]
        if not _ROW.fullmatch(line.text) or len(fields) != len(self._columns):
            if line.is_whole:
                raise ValueError("malformed row")
            return
        values = dict(zip(self._columns, fields, strict=True))
        count, failed = whole(values["total ops"]) - self._operations, whole(values.get("errors", "0"))
        if count < failed:
            raise ValueError("the number of operations contradicts that of the row before, or the number of errors")
        stated_s = {
            percentage: stated_latency_s(decimal(values[column]), MS)
            for column, percentage in _PERCENTAGES.items()
            if column in values and count > failed
        }
        self.rows.append(self._interval(decimal(values["time"]), count, failed, stated_s))
        self._operations += count

    def _interval(self, end_s: float, count: int, failed: int, stated_s: Mapping[float, float]) -> ClientInterval:
        interval = ClientInterval.stated(end_s, count - failed, failed, stated_s)
        return interval.as_response() if self._is_fixed else interval

    def _count(self, label: str) -> int | None:
        text = self.results.get(label, "")
        return int(text) if text.isdigit() else None

    def _length_s(self) -> float:
        """Return the run's duration: that of the rows or, if the results state more, as exactly as they state it."""
        rows_s = self.rows[-1].end_s if self.rows else 0.0
        # The duration is rounded down to a second; the rate, which is rounded to 1/s, states it more exactly.
        rate, operations = self.results.get("op rate", ""), self._count("total operations") or 0
        exact_s = operations / int(rate) if rate.isdigit() and int(rate) else 0.0
        if (seconds := clock_s(self.results.get("total operation time", ""))) is not None:
            exact_s = min(max(exact_s, seconds), seconds + 1.0)
        return max(rows_s, exact_s)

    def total(self) -> ClientInterval | None:
        """Return what the results state; None if they are missing. Raises ValueError."""
        operations, failed = self._count("total operations"), self._count("total errors") or 0
        if operations is None:
            return None
        stated_s = {
            percentage: stated_latency_s(float(text), MS)
            for label, percentage in LATENCIES.items()
            if (text := self.results.get(label, "NaN")) not in ("NaN", "inf")
        }
        return self._interval(self._length_s(), operations, failed, stated_s)

    def notes(self) -> list[str]:
        return run_notes(NAME, earlier=self._runs - 1, has_totals=bool(self.results), is_cut=self._is_cut)
