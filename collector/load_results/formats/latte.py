"""latte's JSON report, of versions 0.27 and later, and what `latte run` prints.

A cycle is one call of a workload's function. Its latency begins when latte calls the function, not when the rate limit
would have allowed it, so it is the service time. The latencies include those of failed cycles.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from collector.file_access import read_whole
from collector.load_results import parsing
from collector.load_results.client_format import ClientFormatError, Format, ResultClock, SourceFile
from collector.load_results.client_result import ClientInterval, ClientResult, Latency, Operation, failed_note
from collector.load_results.command_output import OutputLine, read_output, result_of_rows, run_notes
from collector.load_results.hdr_histogram import decoded
from collector.load_results.parsing import decimal, label_of, stated_latency_s

TOOL = "latte"
MAX_BYTES = 1 << 30


def recognises_report(text: str) -> bool:
    return text.lstrip().startswith("{") and '"conf"' in text and '"workload"' in text


def read_report(file: SourceFile) -> ClientResult:
    result = json.loads(read_whole(file.path, MAX_BYTES))["result"]
    begin_s, samples = parsing.rfc3339_s(result["start_time"]), result["log"]
    failed = sum(map(_failed, samples)) if samples else parsing.checked_count(result["error_count"])
    names = sorted(result["cycle_latency_by_fn"])
    if failed and len(names) > 1:
        # latte does not count errors by function.
        names = [""]
    if len(names) > parsing.MAX_LABELS:
        raise ValueError(f"{len(names)} functions (at most {parsing.MAX_LABELS} are supported)")
    operations = []
    for name in names:
        intervals = [
            _interval(name, sample, begin_s + decimal(sample["time_s"]), decimal(sample["duration_s"]), _failed(sample))
            for sample in samples
        ]
        total = _interval(name, result, begin_s, decimal(result["elapsed_time_s"]), failed)
        operations.append(Operation(label_of(name), tuple(intervals), total))
    notes = failed_note(failed, "request")
    if not samples:
        notes.append("the report contains no periodic samples (hint: run latte without --drop-sampling-log)")
    return file.result(TOOL, operations, notes)


def _failed(sample: Mapping[str, Any]) -> int:
    """Return the number of failed requests; latte's number of failed cycles is that of one thread and function."""
    return parsing.checked_count(sample["req_error_count"])


def _interval(name: str, content: Mapping[str, Any], begin_s: float, length_s: float, failed: int) -> ClientInterval:
    """Return a sample, or the whole report, as an interval of the function `name` ("" for all functions)."""
    latency = content["cycle_latency_by_fn"].get(name) if name else content["cycle_latency"]
    counts = decoded(latency["histogram"]) if latency else {}
    # A cycle ends at its first failed request.
    completed = max(sum(counts.values()) - failed, 0)
    service = Latency(counts) if completed else None
    return ClientInterval(begin_s, begin_s + length_s, completed, {"": failed} if failed else {}, service=service)


# What `latte run` prints: rows for each sample, and a summary. A row has the time at which the sample ended, since the
# run began. Cycles include failed ones. The date and time that latte prints are those of its start, before it connects
# and warms up.

MS = 1e-3
_SECTION = re.compile(r"(?P<title>\S.{0,150}?) +[=\u2550]{10,}")
_LATENCIES = re.compile(r"CYCLE LATENCY for (?P<name>.+?) \[ms\]")
_COLUMNS = re.compile(r"\s*\[s\](?:\s+\[\w+(?:/\w+)?\])+(?:\s+(?:Min|Max|\d+(?:\.\d+)?))+")
_ROW = re.compile(r"\s*\d{1,9}\.\d+(?:\s+(?:\d{1,18}(?:\.\d+)?|NaN|inf))+")
_BEGIN_OF_ROW = re.compile(r"\s*\d+\.\d{3}\s+\d")
_COMPARED = re.compile(r"\s*[-\u2500]{5,} (?:A|This) [-\u2500]{5,}.*")
_RESULT = re.compile(r"\s*(?P<label>Elapsed time|Cycles|Errors)\s+\[(?:s|op)\]\s+(?P<values>[\d.].*)")
_PERCENTILE = re.compile(r"\s*(?P<label>Min|Max|\d{1,2}(?:\.\d+)?)\s+(?P<values>\d.*)")
_FUNCTION = re.compile(r"\s*Function\(s\)\s+(\w+)(?::[\d.]+)?")
_LIMITS = {"Min": "0", "Max": "100"}
_NUMBER = re.compile(r"(?<![\d.+-])\d{1,18}(?:\.\d+)?(?![\d.%])")


def recognises_log(text: str) -> bool:
    lines = text.split("\n")
    sections = {match["title"] for line in lines if (match := _SECTION.fullmatch(line.strip()))}
    has_log = "LOG" in sections and any(map(_COLUMNS.fullmatch, map(str.rstrip, lines)))
    return has_log or {"CONFIG", "SUMMARY STATS"} <= sections


def read_log(file: SourceFile) -> ClientResult:
    run = _LastRun()
    read_output(file.path, run.add)
    if not (run.rows or "Cycles" in run.results):
        raise ClientFormatError("the last run has no rows")
    names = list(run.stated_s)
    name = label_of(names[0]) if len(names) == 1 else "" if names else run.name
    return result_of_rows(file, TOOL, name, run.rows, run.total(), run.notes())


class _LastRun:
    """The last run of a log. `results` has the numbers of the summary by label; `stated_s` percentiles by function."""

    def __init__(self) -> None:
        self._earlier = 0
        self._section = self._function = ""
        self._is_cut = False
        self._begin_run()

    def _begin_run(self) -> None:
        self.name = ""
        self.rows: list[ClientInterval] = []
        self.results: dict[str, float] = {}
        self.stated_s: dict[str, dict[float, float]] = {}
        self._columns: list[str] = []
        self._is_compared = False

    def _add_row(self, text: str) -> None:
        fields = text.split()
        if not _ROW.fullmatch(text) or len(fields) != len(self._columns):
            raise ValueError("malformed row")
        cycles, failed = (parsing.whole(fields[index]) for index in (1, 2))
        if failed > cycles:
            raise ValueError("more failed cycles than cycles")
        stated_s: Mapping[float, float] = {
            float(_LIMITS.get(column, column)): stated_latency_s(float(text), MS)
            for column, text in zip(self._columns[4:], fields[4:], strict=True)
            if cycles > failed and text not in ("NaN", "inf")
        }
        self.rows.append(ClientInterval.stated(float(fields[0]), cycles - failed, failed, stated_s))

    def total(self) -> ClientInterval | None:
        """Return what the summary states; None if it is missing."""
        if "Cycles" not in self.results:
            return None
        length_s, cycles, failed = (self.results.get(label, 0.0) for label in ("Elapsed time", "Cycles", "Errors"))
        stated_s = next(iter(self.stated_s.values())) if len(self.stated_s) == 1 else {}
        return ClientInterval.stated(length_s, int(cycles) - int(failed), int(failed), stated_s)

    def add(self, line: OutputLine) -> None:
        if match := _SECTION.fullmatch(line.text.strip()):
            self._begin(match["title"])
        elif not line.is_whole:
            self._is_cut = True
        elif _COMPARED.fullmatch(line.text):
            self._is_compared = True
        elif self._section == "LOG":
            self._add_log_line(line.text)
        elif self._section == "SUMMARY STATS" and (match := _RESULT.fullmatch(line.text)):
            self.results.setdefault(match["label"], self._number(match["values"]))
        elif self._function and (match := _PERCENTILE.fullmatch(line.text)):
            percentage = float(_LIMITS.get(match["label"], match["label"]))
            value_s = stated_latency_s(self._number(match["values"]), MS)
            self.stated_s.setdefault(self._function, {})[percentage] = value_s
        elif self._section == "CONFIG" and (match := _FUNCTION.fullmatch(line.text)):
            self.name = label_of(match[1])

    def _begin(self, title: str) -> None:
        """Begin a section; the configuration or, without one, the log begins a run."""
        is_run = title == "CONFIG" or (title == "LOG" and self._section != "CONFIG")
        if is_run and (self.rows or self.results):
            self._earlier += 1
            self._begin_run()
        match = _LATENCIES.fullmatch(title)
        self._section, self._function = title, match["name"] if match else ""

    def _add_log_line(self, text: str) -> None:
        if _COLUMNS.fullmatch(text):
            columns = text.split()
            if columns[1:3] != ["[op]", "[op]"]:
                raise ValueError("this version of latte prints no counts (hint: import its JSON report)")
            self._columns = columns
        elif self._columns and _BEGIN_OF_ROW.match(text):
            self._add_row(text)

    def _number(self, text: str) -> float:
        """Return the number of this run; with a baseline, its number comes first."""
        numbers = _NUMBER.findall(re.sub(r"\u00b1\s*[\d.]+", "", text))
        if not numbers:
            raise ValueError("malformed number")
        return float(numbers[1] if self._is_compared and len(numbers) > 1 else numbers[0])

    def notes(self) -> list[str]:
        notes = run_notes(TOOL, earlier=self._earlier, has_totals="Cycles" in self.results, is_cut=self._is_cut)
        if self.results.get("Errors") or any(row.errors for row in self.rows):
            notes.append(
                "the latencies include those of failed cycles, and some versions of latte print the failed cycles of "
                "one thread only (hint: import its JSON report)"
            )
        return notes


FORMATS = (
    Format("latte", recognises_report, read_report, clock=ResultClock.STEADY),
    Format("latte-log", recognises_log, read_log, follows_output=True, clock=ResultClock.STEADY),
)
