"""What `hey` prints when it ends.

Its requests per second count all requests, also those without a response ("Error distribution"). hey keeps the status
and the latency of one million responses at most, the first ones. Latencies are those of responses with any status, from
when a request is sent (service time): with `-q`, a worker waits for its turn, and hey does not count the waiting.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collector.load_results.client_format import ClientFormatError, CommandTimes, Format, Options, ResultClock
from collector.load_results.client_result import (
    NS_PER_S,
    ClientInterval,
    ClientResult,
    StatedTotals,
    failed_note,
    shifted,
)
from collector.load_results.command_output import earlier_runs, last_line_s, last_run, only_total
from collector.load_results.operation_times import OperationTimes
from collector.load_results.text_fields import (
    ANOTHER_RUN,
    FIRST_ERROR_STATUS,
    MAX_LENGTH_S,
    Labels,
    checked_count,
    checked_length_s,
    csv_row,
    decimal,
    json_objects,
    latency_ns,
    read_lines,
    stated_latency,
    status_errors,
    whole,
)
from collector.printable import count_text

HEY = "hey"
MAX_RESPONSES = 1_000_000
SECTIONS = ("Summary:", "Latency distribution:", "Status code distribution:", "Error distribution:")
_SIGN = re.compile(r"^Summary:\n  Total:\t[\d.]+ secs\n  Slowest:\t", re.MULTILINE)
_TOTAL = re.compile(r"  Total:\t(\d{1,12}\.\d{4}) secs")
_LIMITS = re.compile(r"  (Slowest|Fastest):\t(\d{1,12}\.\d{4}) secs")
_RATE = re.compile(r"  Requests/sec:\t(\d{1,15}\.\d{4})")
# Version 0.1.5 writes two percent signs.
_HEY_PERCENTILE = re.compile(r"  (\d{1,2})%{1,2} in (\d{1,12}\.\d{4}) secs")
_COUNT = re.compile(r"  \[(?P<key>\d{1,18})\]\t(?P<text>.*)")
_RESPONSES = re.compile(r"\d{1,18} responses")


def read_hey(path: Path, times: CommandTimes, _options: Options) -> ClientResult:
    run, notes = last_run(path, HEY, SECTIONS[0].__eq__, _HeyRun)
    run.check()
    stated = StatedTotals(attempted_per_s=run.rate_per_s)
    return only_total((HEY, HEY), run.total(), path, times, [*run.notes(), *notes], stated)


FORMATS_HEY = (Format(HEY, _SIGN, read_hey, follows_output=True, clock=ResultClock.STEADY),)


class _HeyRun:
    """One run of hey: what it has printed."""

    def __init__(self) -> None:
        self.rate_per_s: float | None = None
        self._length_s: float | None = None
        self._section = ""
        self._stated_s: dict[float, float] = {}
        self._statuses: dict[str, int] = {}
        self._errors: dict[str, int] = {}
        self._kinds = Labels()

    def add(self, text: str) -> None:
        """Add a line; those of other programs are ignored."""
        if text.rstrip() == text and text.endswith(":") and not text.startswith(" "):
            self._section = text
        elif self._section == "Summary:":
            self._add_summary(text)
        elif self._section == "Latency distribution:" and (match := _HEY_PERCENTILE.fullmatch(text)):
            self._stated_s[float(match[1])] = float(match[2])
        elif match := _COUNT.fullmatch(text):
            self._add_count(match["key"], match["text"])

    def _add_summary(self, text: str) -> None:
        if match := _TOTAL.fullmatch(text):
            self._length_s = float(match[1])
        elif match := _RATE.fullmatch(text):
            self.rate_per_s = float(match[1])
        elif match := _LIMITS.fullmatch(text):
            self._stated_s[100.0 if match[1] == "Slowest" else 0.0] = float(match[2])

    def _add_count(self, key: str, text: str) -> None:
        if self._section == "Status code distribution:" and _RESPONSES.fullmatch(text):
            self._statuses[key] = int(text.partition(" ")[0])
        elif self._section == "Error distribution:":
            kind = self._kinds.of(text, int(key))
            self._errors[kind] = self._errors.get(kind, 0) + int(key)

    def check(self) -> None:
        """Raise ClientFormatError if the totals are missing or contradict each other."""
        if self._length_s is None or self.rate_per_s is None:
            raise ClientFormatError("the totals of the last run are missing (hint: hey prints them when it ends)")
        if not self._statuses and not self._errors:
            raise ClientFormatError("the numbers of responses are missing (hint: the output may be incomplete)")

    @property
    def _responses(self) -> int:
        return sum(self._statuses.values())

    @property
    def _unlisted(self) -> int:
        """The number of responses beyond those whose status hey keeps."""
        if self._responses < MAX_RESPONSES:
            return 0
        attempted = round((self.rate_per_s or 0.0) * (self._length_s or 0.0))
        return max(attempted - self._responses - sum(self._errors.values()), 0)

    def total(self) -> ClientInterval:
        """Return the total, whose times count from the beginning of the run. Raises ValueError."""
        failed = status_errors(self._statuses)
        completed = self._responses - sum(failed.values()) + self._unlisted
        # hey prints 0 for a percentile that it does not know.
        stated_s = {percentage: value_s for percentage, value_s in self._stated_s.items() if value_s}
        latency = stated_latency(stated_s) if completed and stated_s else None
        return ClientInterval(
            0.0, checked_length_s(self._length_s), completed, {**failed, **self._errors}, service=latency
        )

    def notes(self) -> list[str]:
        notes = failed_note(sum(status_errors(self._statuses).values()), "request")
        if self._unlisted:
            notes.append(
                f"hey keeps the status and the latency of the first {MAX_RESPONSES:,} responses only; "
                f"{self._unlisted:,} further responses are counted as completed"
            )
        return [*notes, *self._kinds.notes("error", "kind")]


OHA = "oha"
DEADLINE = "aborted due to deadline"
CORRECTION = "--latency-correction"
KEYS = ("successRate", "latencyPercentiles", "statusCodeDistribution")
_OHA_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,6})?)")


def recognises_oha(text: str) -> bool:
    return all(f'"{key}"' in text for key in KEYS) and "\n{" in f"\n{text}"


def read_oha(path: Path, times: CommandTimes, _options: Options) -> ClientResult:
    reports = [content for content in json_objects(path) if "summary" in content]
    if not reports:
        raise ValueError("no summary")
    report = _Report(reports[-1])
    total = report.total(is_response=CORRECTION in " ".join(times.words))
    notes = [*report.notes(), *earlier_runs(len(reports) - 1, OHA)]
    return only_total((OHA, OHA), total, path, times, notes, report.stated)


FORMATS_OHA = (Format(OHA, recognises_oha, read_oha, follows_output=True, clock=ResultClock.STEADY),)


class _Report:
    """A report. Raises one of MALFORMED if it is malformed."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        summary, statuses, errors = (content[key] for key in ("summary", "statusCodeDistribution", "errorDistribution"))
        self._length_s = checked_length_s(summary["total"])
        self._slowest_s = summary["slowest"]
        self._rate_per_s = decimal(summary["requestsPerSec"])
        self._statuses = {str(status): checked_count(count) for status, count in statuses.items()}
        self._errors: dict[str, int] = {}
        self._kinds, self._aborted = Labels(), checked_count(errors.get(DEADLINE, 0))
        for text, count in errors.items():
            if text != DEADLINE:
                kind = self._kinds.of(text, checked_count(count))
                self._errors[kind] = self._errors.get(kind, 0) + checked_count(count)
        self._percentiles = content.get("latencyPercentilesSuccessful") or content["latencyPercentiles"]
        self._has_only_successful = bool(content.get("latencyPercentilesSuccessful"))

    @property
    def stated(self) -> StatedTotals:
        aborted_per_s = self._aborted / self._length_s if self._length_s else 0.0
        return StatedTotals(attempted_per_s=self._rate_per_s - aborted_per_s)

    def total(self, *, is_response: bool) -> ClientInterval:
        """Return the total, whose times count from the beginning of the run."""
        failed = status_errors(self._statuses)
        completed = sum(self._statuses.values()) - sum(failed.values())
        stated_s = {
            float(match[1]): decimal(value_s)
            for key, value_s in self._percentiles.items()
            if (match := _OHA_PERCENTILE.fullmatch(key)) and value_s is not None
        }
        if not self._has_only_successful and self._slowest_s is not None:
            stated_s[100.0] = decimal(self._slowest_s)
        latency = stated_latency(stated_s) if completed and stated_s else None
        response, service = (latency, None) if is_response else (None, latency)
        return ClientInterval(0.0, self._length_s, completed, {**failed, **self._errors}, response, service)

    def notes(self) -> list[str]:
        failed = 0 if self._has_only_successful else sum(status_errors(self._statuses).values())
        notes = failed_note(failed, "request", " (hint: oha --stats-success-breakdown)")
        if self._aborted:
            notes.append(f"{count_text(self._aborted, 'request')} cut off by the end of the run not counted")
        return [*notes, *self._kinds.notes("error", "kind")]


@dataclass(frozen=True)
class _ResponseFile:
    """A format: its name, the load generator, the header, and the columns of a row.

    begin, duration, status  the columns with a request's begin, its duration and the status of its response.
    note                     returns what is missing in a file with a number of rows.
    """

    name: str
    tool: str
    header: str
    begin: str
    duration: str
    status: str
    note: Callable[[int], str]

    def read(self, path: Path, times: CommandTimes, _options: Options) -> ClientResult:
        rows = _Rows(self)
        notes = read_lines(path, rows.add)
        if not rows.number:
            raise ClientFormatError("no rows")
        begin_s = max(last_line_s(path, times, rows.length_s) - rows.length_s, times.begin_s)
        all_notes = (*notes, self.note(rows.number))
        result = ClientResult(self.name, self.tool, path.name, rows.times.operations(), True, all_notes)
        return shifted(result, begin_s)

    def format(self) -> Format:
        sign = re.compile(f"^{re.escape(self.header)}$", re.MULTILINE)
        return Format(self.name, sign, self.read, follows_output=True, clock=ResultClock.STEADY)


def _note_of_hey(rows: int) -> str:
    if rows >= MAX_RESPONSES:
        return f"hey writes {MAX_RESPONSES:,} rows at most; others are missing (hint: use what hey prints without -o)"
    return "requests without a response are not in the file (hint: hey prints them without -o)"


_HEY_CSV = _ResponseFile(
    "hey-csv",
    "hey",
    "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset",
    begin="offset",
    duration="response-time",
    status="status-code",
    note=_note_of_hey,
)
_OHA_CSV = _ResponseFile(
    "oha-csv",
    "oha",
    "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status",
    begin="request-start",
    duration="request-duration",
    status="status",
    note=lambda _: "requests without a response are not in the file (hint: oha's JSON has them)",
)
FORMATS_CSV = (_HEY_CSV.format(), _OHA_CSV.format())


class _Rows:
    """The responses in the rows of a file; times are in seconds since the run began."""

    def __init__(self, columns: _ResponseFile) -> None:
        self.times = OperationTimes()
        self.number = 0
        self.length_s = 0.0
        self._has_begun = False
        self._columns = columns
        self._names = columns.header.split(",")

    def add(self, line: str) -> None:
        """Add a line. Raises ValueError."""
        is_header = line == self._columns.header
        if is_header and self.number:
            raise ValueError(ANOTHER_RUN)
        self._has_begun |= is_header
        if is_header or not self._has_begun:
            # A command may print other lines before.
            return
        row = csv_row(line, self._names)
        begin_s, duration_s = decimal(row[self._columns.begin]), decimal(row[self._columns.duration])
        status = whole(row[self._columns.status])
        if not (0 <= begin_s <= MAX_LENGTH_S and 100 <= status <= 999):
            raise ValueError("not a response: its begin or its status is out of range")
        duration_ns, end_s = latency_ns(duration_s, NS_PER_S), begin_s + duration_s
        if status >= FIRST_ERROR_STATUS:
            self.times.add_error("", end_s, f"status {status}")
        else:
            self.times.add("", end_s, duration_ns)
        self.number += 1
        self.length_s = max(self.length_s, end_s)


FORMATS = (*FORMATS_HEY, *FORMATS_OHA, *FORMATS_CSV)
