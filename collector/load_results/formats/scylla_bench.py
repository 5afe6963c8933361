"""What scylla-bench prints, and cql-stress as its frontend (`cql-stress-scylla-bench`).

A row has the time since the run began and what happened since the row before, although its columns are named `ops/s`
and `rows/s`. scylla-bench counts only operations that succeeded, cql-stress all of them. Only the header of cql-stress
is not indented, and that of old versions of scylla-bench, whose column is `operations/s`. The total also has the
operations after the last row. The latencies of rows are raw (service times) or fixed for coordinated omission (response
times), as the option `-latency-type` states; the total has both.
"""

import re
from collections.abc import Mapping

from collector.load_results.client_format import ClientFormatError, Format, ResultClock, SourceFile
from collector.load_results.client_result import ClientInterval, ClientResult
from collector.load_results.command_output import OutputLine, read_output, result_of_rows, run_notes
from collector.load_results.parsing import go_duration_s, label_of, stated_latency_s, succeeded, whole

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


def read(file: SourceFile) -> ClientResult:
    run = _LastRun()
    read_output(file.path, run.add)
    if not run.rows and run.completed is None:
        raise ClientFormatError("the last run has no rows")
    tool = "cql-stress" if run.counts_failed else NAME
    rows = run.rows
    if run.has_fixed_rows(" ".join(file.times.words)):
        rows = [row.as_response() for row in rows]
    return result_of_rows(file, tool, run.name, rows, run.total(), run.notes(tool))


_SIGN = re.compile(rf"^{_HEADER.pattern} *$", re.MULTILINE)
FORMATS = (Format(NAME, _SIGN.search, read, follows_output=True, clock=ResultClock.STEADY),)


class _LastRun:
    """The last run of a log. `counts_failed` states whether its number of operations includes failed ones."""

    def __init__(self) -> None:
        self._runs = 0
        self._next_name = ""
        self._begin("")

    def _begin(self, header: str) -> None:
        self.name = self._next_name
        self.counts_failed = header.startswith("time") and " ops/s" in header
        self.rows: list[ClientInterval] = []
        self.completed: int | None = None
        # The number of latencies in each row.
        self._latencies = len(header.split()) - _COUNT_COLUMNS
        self._stated_s: dict[str, dict[float, float]] = {}
        self._length_s = 0.0
        self._failed = 0
        self._kind: str | None = None
        self._has_results = self._is_cut = False

    def add(self, line: OutputLine) -> None:
        if _HEADER.fullmatch(line.text):
            self._runs += 1
            self._begin(line.text)
        elif match := _MODE.fullmatch(line.text):
            self._next_name = "" if match[1] == "mixed" else label_of(match[1])
        elif not self._runs:
            return
        elif line.text in ("Results", "Results:"):
            self._has_results = True
        elif self._has_results:
            self._add_result(line)
        elif _BEGIN_OF_ROW.match(line.text):
            self._add_row(line)

    def _add_row(self, line: OutputLine) -> None:
        match = (_ROW if self._latencies else _ROW_WITHOUT_LATENCIES).fullmatch(line.text)
        values = match["latencies"].split() if match and self._latencies else []
        # scylla-bench ends a row when it begins the next one, so a killed one leaves a whole row without a line end.
        if match is None or len(values) < self._latencies:
            if line.is_whole:
                raise ValueError("malformed row")
            self._is_cut = True
            return
        operations, failed = int(match["operations"]), int(match["failed"])
        completed = succeeded(operations, failed if self.counts_failed else 0)
        stated_s: Mapping[float, float] = {}
        if completed:
            stated_s = {
                percentage: stated_latency_s(go_duration_s(text))
                for percentage, text in zip(_ROW_PERCENTAGES, values, strict=False)
            }
        self.rows.append(ClientInterval.stated(go_duration_s(match["time"]), completed, failed, stated_s))

    def _add_result(self, line: OutputLine) -> None:
        if not line.is_whole:
            self._is_cut = True
        elif match := _RESULT.fullmatch(line.text):
            if match["label"] == "Time (avg)":
                self._length_s = go_duration_s(match["value"])
            elif match["label"] == "Total ops":
                self.completed = whole(match["value"])
            else:
                self._failed = whole(match["value"])
        elif line.text.rstrip().endswith(":"):
            kind = _KIND.fullmatch(line.text.rstrip())
            self._kind = kind["kind"] if kind else None
        # What cql-stress prints as its 99.9th percentile is the maximum.
        elif (
            self._kind
            and (match := _PERCENTILE.fullmatch(line.text))
            and not (self.counts_failed and match["label"] == "99.9th")
        ):
            percentage = _PERCENTAGES[re.sub(r"(?<=\d)h", "th", match["label"])]
            self._stated_s.setdefault(self._kind, {})[percentage] = stated_latency_s(go_duration_s(match["value"]))

    def total(self) -> ClientInterval | None:
        """Return what the results state; None if they are missing."""
        if self.completed is None:
            return None
        fixed_s, raw_s = (self._stated_s.get(kind, {}) for kind in ("c-o fixed", "raw"))
        completed = self.completed - self._failed * self.counts_failed
        return ClientInterval.stated(self._length_s, completed, self._failed, raw_s, fixed_s)

    def has_fixed_rows(self, command: str) -> bool:
        """Return whether the latencies of rows are response times: as stated, or since they exceed the raw maximum."""
        if _FIXED.search(command):
            return True
        raw_s = self._stated_s.get("raw", {}).get(100.0)
        highest_s = max((row.service.percentile_s(100.0) or 0.0 for row in self.rows if row.service), default=0.0)
        return raw_s is not None and highest_s > raw_s * _ROUNDING

    def notes(self, tool: str) -> list[str]:
        has_totals = self.completed is not None
        notes = run_notes(tool, earlier=self._runs - 1, has_totals=has_totals, is_cut=self._is_cut)
        if not self.counts_failed and any(row.errors for row in self.rows):
            notes.append("the latencies include those of operations that timed out")
        return notes
