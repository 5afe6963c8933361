"""What `hey` prints when it ends, oha's JSON, and the CSV files of both.

Latencies are those of responses with any status, unless stated otherwise.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from collector.load_results import parsing
from collector.load_results.client_format import ClientFormatError, Format, ResultClock, SourceFile
from collector.load_results.client_result import NS_PER_S, ClientInterval, ClientResult, StatedTotals, failed_note
from collector.load_results.command_output import begin_of_run_s, earlier_runs, last_run, only_total
from collector.load_results.operation_times import OperationTimes
from collector.load_results.parsing import FIRST_ERROR_STATUS, decimal
from collector.printable import count_text

HEY, OHA = "hey", "oha"


class _Counts:
    """The numbers of responses by status, and of requests without a response by kind of error."""

    def __init__(self) -> None:
        self.statuses: dict[str, int] = {}
        self.errors: Counter[str] = Counter()
        self._kinds = parsing.Labels()

    @property
    def responses(self) -> int:
        return sum(self.statuses.values())

    @property
    def _status_errors(self) -> dict[str, int]:
        """The number of failed responses by kind of error."""
        return {
            f"status {status}": count
            for status, count in self.statuses.items()
            if parsing.whole(status) >= FIRST_ERROR_STATUS
        }

    @property
    def failed_responses(self) -> int:
        return sum(self._status_errors.values())

    def add_error(self, text: str, count: int) -> None:
        self.errors[self._kinds.of(text, count)] += count

    def total(self, length_s: float, stated_s: Mapping[float, float], *, further: int = 0) -> ClientInterval:
        """Return the total, whose times count from the beginning of the run, with `further` completed operations."""
        completed = self.responses - self.failed_responses + further
        errors = {**self._status_errors, **self.errors}
        known_s = parsing.checked_percentiles_s(stated_s) if completed else {}
        return ClientInterval.stated(length_s, completed, errors, known_s)

    def notes(self) -> list[str]:
        return self._kinds.notes("error", "kind")


# What hey prints. Its requests per second count all requests, also those without a response ("Error distribution"). hey
# keeps the status and the latency of one million responses at most, the first ones. Latencies count from when a request
# is sent (service time): with `-q`, a worker waits for its turn, and hey does not count the waiting.

MAX_RESPONSES = 1_000_000
_BEGIN = "Summary:"
_SUMMARY_SIGN = re.compile(r"^Summary:\n  Total:\t[\d.]+ secs\n  Slowest:\t", re.MULTILINE)
_SUMMARY = re.compile(
    r"  (?P<label>(?P<time>Total|Slowest|Fastest)|Requests/sec):\t(?P<value>\d{1,15}\.\d{4})(?(time) secs)"
)
# Version 0.1.5 writes two percent signs.
_PERCENTILE = re.compile(r"  (\d{1,2})%{1,2} in (\d{1,12}\.\d{4}) secs")
_STATUS = re.compile(r"  \[(\d{1,18})\]\t(\d{1,18}) responses")
_ERROR = re.compile(r"  \[(\d{1,18})\]\t(.*)")


def read_hey(file: SourceFile) -> ClientResult:
    run, notes = last_run(file.path, HEY, _BEGIN.__eq__, _HeyRun)
    total = run.total()
    stated = StatedTotals(attempted_per_s=run.values["Requests/sec"])
    return only_total(file, HEY, total, [*run.notes(), *notes], stated)


class _HeyRun:
    """One run of hey. `values` has the figures of its summary by label."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self._section = ""
        self._stated_s: dict[float, float] = {}
        self._counts = _Counts()

    def add(self, text: str) -> None:
        if text.rstrip() == text and text.endswith(":") and not text.startswith(" "):
            self._section = text
        elif self._section == _BEGIN and (match := _SUMMARY.fullmatch(text)):
            self.values[match["label"]] = float(match["value"])
        elif self._section == "Latency distribution:" and (match := _PERCENTILE.fullmatch(text)):
            self._stated_s[float(match[1])] = float(match[2])
        elif self._section == "Status code distribution:" and (match := _STATUS.fullmatch(text)):
            self._counts.statuses[match[1]] = int(match[2])
        elif self._section == "Error distribution:" and (match := _ERROR.fullmatch(text)):
            self._counts.add_error(match[2], int(match[1]))

    @property
    def _unlisted(self) -> int:
        """The number of responses beyond those whose status hey keeps."""
        if self._counts.responses < MAX_RESPONSES:
            return 0
        attempted = round(self.values["Requests/sec"] * self.values["Total"])
        return max(attempted - self._counts.responses - self._counts.errors.total(), 0)

    def total(self) -> ClientInterval:
        """Return the total, whose times count from the beginning of the run.

        Raises ClientFormatError if figures are missing, and ValueError.
        """
        if not {"Total", "Requests/sec"} <= self.values.keys():
            raise ClientFormatError("the totals of the last run are missing (hint: hey prints them when it ends)")
        if not self._counts.statuses and not self._counts.errors:
            raise ClientFormatError("the numbers of responses are missing (hint: the output may be incomplete)")
        limits_s = {0.0: self.values.get("Fastest", 0.0), 100.0: self.values.get("Slowest", 0.0)}
        # hey prints 0 for a percentile that it does not know.
        stated_s = {percentage: value_s for percentage, value_s in (limits_s | self._stated_s).items() if value_s}
        return self._counts.total(parsing.checked_length_s(self.values["Total"]), stated_s, further=self._unlisted)

    def notes(self) -> list[str]:
        notes = failed_note(self._counts.failed_responses, "request")
        if self._unlisted:
            notes.append(
                f"hey keeps the status and the latency of the first {MAX_RESPONSES:,} responses only; "
                f"{self._unlisted:,} further responses are counted as completed"
            )
        return [*notes, *self._counts.notes()]


# oha's JSON (`oha --output-format json`; `oha --json` in earlier versions). Requests that the end of the run cut off
# ("aborted due to deadline") are neither completed nor failed. With `--stats-success-breakdown`, the latencies of
# responses with a status below 400 are also stated. Latencies are service times, or response times with
# `--latency-correction`, which the file does not state, so it is looked for in the command.

_DEADLINE = "aborted due to deadline"
_CORRECTION = "--latency-correction"
_KEYS = ("successRate", "latencyPercentiles", "statusCodeDistribution")


def recognises_oha(text: str) -> bool:
    return all(f'"{key}"' in text for key in _KEYS) and "\n{" in f"\n{text}"


def read_oha(file: SourceFile) -> ClientResult:
    reports = [content for content in parsing.json_objects(file.path) if "summary" in content]
    if not reports:
        raise ValueError("no summary")
    report = _Report(reports[-1])
    total = report.total()
    if _CORRECTION in " ".join(file.times.words):
        total = total.as_response()
    notes = [*report.notes(), *earlier_runs(len(reports) - 1, OHA)]
    return only_total(file, OHA, total, notes, report.stated)


class _Report:
    """A report. Raises one of MALFORMED if it is malformed."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        summary, statuses, errors = (content[key] for key in ("summary", "statusCodeDistribution", "errorDistribution"))
        self._length_s = parsing.checked_length_s(summary["total"])
        self._slowest_s = summary["slowest"]
        self._rate_per_s = decimal(summary["requestsPerSec"])
        self._counts = _Counts()
        self._counts.statuses = {str(status): parsing.checked_count(count) for status, count in statuses.items()}
        self._aborted = parsing.checked_count(errors.get(_DEADLINE, 0))
        for text, count in errors.items():
            if text != _DEADLINE:
                self._counts.add_error(text, parsing.checked_count(count))
        self._percentiles = content.get("latencyPercentilesSuccessful") or content["latencyPercentiles"]
        self._has_only_successful = bool(content.get("latencyPercentilesSuccessful"))

    @property
    def stated(self) -> StatedTotals:
        return StatedTotals(attempted_per_s=self._rate_per_s - self._aborted / self._length_s)

    def total(self) -> ClientInterval:
        """Return the total, whose times count from the beginning of the run."""
        known_s = {key: value_s for key, value_s in self._percentiles.items() if value_s is not None}
        stated_s = parsing.percentiles_s(known_s)
        if not self._has_only_successful and self._slowest_s is not None:
            stated_s[100.0] = decimal(self._slowest_s)
        return self._counts.total(self._length_s, stated_s)

    def notes(self) -> list[str]:
        failed = 0 if self._has_only_successful else self._counts.failed_responses
        notes = failed_note(failed, "request", " (hint: oha --stats-success-breakdown)")
        if self._aborted:
            notes.append(f"{count_text(self._aborted, 'request')} cut off by the end of the run not counted")
        return [*notes, *self._counts.notes()]


# The CSV of hey (`hey -o csv`) and of oha (`oha --output-format csv`): one row per response. Times are in seconds since
# the run began. Requests without a response have no row.


_HEY_HEADER = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset"
_OHA_HEADER = "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status"


def read_hey_csv(file: SourceFile) -> ClientResult:
    rows = _Rows(_HEY_HEADER, begin="offset", duration="response-time", status="status-code")
    result = rows.result(file, HEY)
    if rows.number >= MAX_RESPONSES:
        note = f"hey writes {MAX_RESPONSES:,} rows at most; others are missing (hint: use what hey prints without -o)"
    else:
        note = "requests without a response are not in the file (hint: hey prints them without -o)"
    return replace(result, notes=(*result.notes, note))


def read_oha_csv(file: SourceFile) -> ClientResult:
    rows = _Rows(_OHA_HEADER, begin="request-start", duration="request-duration", status="status")
    result = rows.result(file, OHA)
    note = "requests without a response are not in the file (hint: oha's JSON has them)"
    return replace(result, notes=(*result.notes, note))


def _has_line(line: str, text: str) -> bool:
    return line in text.split("\n")


class _Rows:
    """The responses in the rows of a file, given its header, and the columns with what is read of a response."""

    def __init__(self, header: str, *, begin: str, duration: str, status: str) -> None:
        self.number = 0
        self._times = OperationTimes()
        self._length_s = 0.0
        self._has_begun = False
        self._header = header
        self._begin, self._duration, self._status = begin, duration, status

    def result(self, file: SourceFile, tool: str) -> ClientResult:
        """Read a file, and return its result, which ends when the file was written."""
        notes = parsing.read_lines(file.path, self.add)
        result = self._times.result(file, tool, notes, empty="no rows")
        return replace(result.shifted(begin_of_run_s(file, self._length_s)), estimated_clock=True)

    def add(self, line: str) -> None:
        is_header = line == self._header
        if is_header and self.number:
            raise ValueError(parsing.ANOTHER_RUN)
        self._has_begun |= is_header
        if is_header or not self._has_begun:
            # A command may print other lines before.
            return
        row = parsing.csv_row(line, self._header.split(","))
        begin_s, duration_s = decimal(row[self._begin]), decimal(row[self._duration])
        status = parsing.whole(row[self._status])
        if not (0 <= begin_s <= parsing.MAX_LENGTH_S and 100 <= status <= 999):
            raise ValueError("not a response: its begin or its status is out of range")
        duration_ns, end_s = parsing.latency_ns(duration_s, NS_PER_S), begin_s + duration_s
        if status >= FIRST_ERROR_STATUS:
            self._times.add_error("", end_s, f"status {status}")
        else:
            self._times.add("", end_s, duration_ns)
        self.number += 1
        self._length_s = max(self._length_s, end_s)


FORMATS = (
    Format(HEY, _SUMMARY_SIGN.search, read_hey, follows_output=True, clock=ResultClock.STEADY),
    Format(OHA, recognises_oha, read_oha, follows_output=True, clock=ResultClock.STEADY),
    Format("hey-csv", partial(_has_line, _HEY_HEADER), read_hey_csv, follows_output=True, clock=ResultClock.STEADY),
    Format("oha-csv", partial(_has_line, _OHA_HEADER), read_oha_csv, follows_output=True, clock=ResultClock.STEADY),
)
