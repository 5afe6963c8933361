"""What scylla-bench prints, and cql-stress as its frontend (`cql-stress-scylla-bench`).

A row has the time since the run began and what happened since the row before, although its columns are named `ops/s`
and `rows/s`. scylla-bench counts only operations that succeeded, cql-stress all of them. Only the header of cql-stress
is not indented, and that of old versions of scylla-bench, whose column is `operations/s`. The total also has the
operations after the last row. The latencies of rows are raw (service times) or fixed for coordinated omission (response
times), as the option `-latency-type` states; the total has both.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from collector.load_results.client_format import ClientFormatError, CommandTimes, Format, Options, ResultClock
from collector.load_results.client_result import ClientInterval, ClientResult
from collector.load_results.command_output import OutputLine, operation_of, printed_row, read_output, run_notes
from collector.load_results.parsing import go_duration_s, label_of, stated_latency_s, whole

NAME = "scylla-bench"
_HEADER = re.compile(r" *time +(?:ops|operations)/s +rows/s +errors(?: +max .*)?")
_COUNTS = r" *(?P<time>[\d.hmsn\u00b5\u03bcu]{1,40}) +(?P<operations>\d{1,18}) +\d+ +(?P<failed>\d{1,18})"
_BEGIN_OF_ROW = re.compile(r" *(?:\d+(?:\.\d+)?(?:h|m|s|ms|us|ns|\u00b5s|\u03bcs))+ +-?\d+ +-?\d")
# Errors, which are printed to another stream, follow rows on the same line.
_ROW = re.compile(_COUNTS + r"(?P<latencies>(?: +\d[hmnsu\u00b5\u03bc\d.]{0,30}){6,7})(?: .*)?")
_ROW_WITHOUT_LATENCIES = re.compile(_COUNTS + r"(?: .*)?")
_RESULT = re.compile(r"(?P<label>Time \(avg\)|Total ops|Total errors):\s*(?P<value>\S+)")
_KIND = re.compile(r"(?P<kind>raw|c-o fixed) latency ?:")
_PERCENTILE = re.compile(r"\s+(?P<label>max|99\.9th|9[059]t?h|median):\s*(?P<value>\S+)")
_MODE = re.compile(r"Mode:\s+(\w+)")
_COUNT_COLUMNS = 4
_ROW_PERCENTAGES = (100.0, 99.9, 99.0, 95.0, 90.0, 50.0)
_PERCENTAGES = {"max": 100.0, "99.9th": 99.9, "99th": 99.0, "95th": 95.0, "90th": 90.0, "median": 50.0}
_FIXED = re.compile(r"-latency-type[= ]+\S*(?:fixed|co)\S*")
# Latencies of rows have at least two digits.
_ROUNDING = 1.06


def read(path: Path, times: CommandTimes, _options: Options) -> ClientResult:
    log = _Log()
    read_output(path, log.add)
    run = log.run
    if run is None or not (run.rows or run.completed is not None):
        raise ClientFormatError("the last run has no rows")
    tool = "cql-stress" if run.counts_failed else NAME
    rows = run.rows
    if run.has_fixed_rows(" ".join(times.words)):
        rows = [replace(row, response=row.service, service=None) for row in rows]
    operation = operation_of(run.name, rows, run.total(), path, times)
    return ClientResult(NAME, tool, path.name, (operation,), True, tuple(log.notes(tool)))


FORMATS = (
    Format(
        NAME, re.compile(rf"^{_HEADER.pattern} *$", re.MULTILINE), read, follows_output=True, clock=ResultClock.STEADY
    ),
)


@dataclass
class _Run:
    """One run.

    counts_failed  whether the number of operations includes failed ones.
    latencies      the number of latencies in each row.
    """

    name: str
    counts_failed: bool
    latencies: int
    rows: list[ClientInterval] = field(default_factory=list)
    stated_s: dict[str, dict[float, float]] = field(default_factory=dict)
    length_s: float = 0.0
    completed: int | None = None
    failed: int = 0

    def add_row(self, match: re.Match[str]) -> None:
        operations, failed = int(match["operations"]), int(match["failed"])
        completed = operations - failed * self.counts_failed
        if completed < 0:
            raise ValueError("more failed operations than operations")
        stated_s: Mapping[float, float] = {}
        if self.latencies and completed:
            values = match["latencies"].split()
            stated_s = {
                percentage: stated_latency_s(go_duration_s(text))
                for percentage, text in zip(_ROW_PERCENTAGES, values, strict=False)
            }
        self.rows.append(printed_row(go_duration_s(match["time"]), completed, {"": failed}, {}, stated_s))

    def add_result(self, label: str, value: str) -> None:
        if label == "Time (avg)":
            self.length_s = go_duration_s(value)
        elif label == "Total ops":
            self.completed = whole(value)
        else:
            self.failed = whole(value)

    def add_percentile(self, kind: str, label: str, value: str) -> None:
        # What cql-stress prints as its 99.9th percentile is the maximum.
        if not (self.counts_failed and label == "99.9th"):
            percentage = _PERCENTAGES[re.sub(r"(?<=\d)h", "th", label)]
            self.stated_s.setdefault(kind, {})[percentage] = stated_latency_s(go_duration_s(value))

    def total(self) -> ClientInterval | None:
        """Return what the results state; None if they are missing."""
        if self.completed is None:
            return None
        fixed_s, raw_s = (self.stated_s.get(kind, {}) for kind in ("c-o fixed", "raw"))
        completed = self.completed - self.failed * self.counts_failed
        return printed_row(self.length_s, completed, {"": self.failed}, fixed_s, raw_s)

    def has_fixed_rows(self, command: str) -> bool:
        """Return whether the latencies of rows are response times: as stated, or since they exceed the raw maximum."""
        if _FIXED.search(command):
            return True
        raw_s = self.stated_s.get("raw", {}).get(100.0)
        highest_s = max((row.service.percentile_s(100.0) or 0.0 for row in self.rows if row.service), default=0.0)
        return raw_s is not None and highest_s > raw_s * _ROUNDING


class _Log:
    """The last run of a log, and the number of earlier ones."""

    def __init__(self) -> None:
        self.run: _Run | None = None
        self._name = ""
        self._earlier = 0
        self._kind: str | None = None
        self._has_results = self._is_cut = False

    def add(self, line: OutputLine) -> None:
        if _HEADER.fullmatch(line.text):
            self._earlier += self.run is not None
            is_cql_stress = line.text.startswith("time") and " ops/s" in line.text
            self.run = _Run(self._name, is_cql_stress, len(line.text.split()) - _COUNT_COLUMNS)
            self._has_results = self._is_cut = False
            self._kind = None
        elif match := _MODE.fullmatch(line.text):
            self._name = "" if match[1] == "mixed" else label_of(match[1])
        elif self.run and line.text in ("Results", "Results:"):
            self._has_results = True
        elif self.run and self._has_results:
            self._add_result(self.run, line)
        elif self.run and _BEGIN_OF_ROW.match(line.text):
            self._add_row(self.run, line)

    def _add_row(self, run: _Run, line: OutputLine) -> None:
        match = (_ROW if run.latencies else _ROW_WITHOUT_LATENCIES).fullmatch(line.text)
        # scylla-bench ends a row when it begins the next one, so a killed one leaves a whole row without a line end.
        if match and (not run.latencies or len(match["latencies"].split()) >= run.latencies):
            run.add_row(match)
        elif line.is_whole:
            raise ValueError("malformed row")
        else:
            self._is_cut = True

    def _add_result(self, run: _Run, line: OutputLine) -> None:
        if not line.is_whole:
            self._is_cut = True
        elif match := _RESULT.fullmatch(line.text):
            run.add_result(match["label"], match["value"])
        elif line.text.rstrip().endswith(":"):
            kind = _KIND.fullmatch(line.text.rstrip())
            self._kind = kind["kind"] if kind else None
        elif self._kind and (match := _PERCENTILE.fullmatch(line.text)):
            run.add_percentile(self._kind, match["label"], match["value"])

    def notes(self, tool: str) -> list[str]:
        run = self.run
        has_totals = run is not None and run.completed is not None
        notes = run_notes(tool, earlier=self._earlier, has_totals=has_totals, is_cut=self._is_cut)
        if run and not run.counts_failed and any(row.errors.get("") for row in run.rows):
            notes.append("the latencies include those of operations that timed out")
        return notes
