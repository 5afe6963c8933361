"""What ApacheBench (`ab`) prints when it ends, and its file of requests for gnuplot.

"Complete requests" are all responses, including those with an error status, those whose length differs from the first
one's, and those that broke off. ab counts a response in each of these classes that fits, so the number of failed
responses is known only if one of them includes the others; the largest class is used. Connections that failed are not
complete requests. Percentiles are whole milliseconds, of all responses, measured from when a request's connection began
(service time).
"""

import re
from functools import partial
from itertools import islice

from collector.load_results import parsing
from collector.load_results.client_format import ClientFormatError, Format, SourceFile
from collector.load_results.client_result import ClientInterval, ClientResult, StatedTotals, failed_note
from collector.load_results.command_output import last_run, only_total, output_lines
from collector.load_results.operation_times import OperationTimes
from collector.printable import count_text

NAME = "ab"
_BEGIN = re.compile(r"\s*This is ApacheBench, Version ([\w.]{1,20})")
_PERCENTILES = "Percentage served,Time in ms"
_SIGN = re.compile(rf"\A{_PERCENTILES}|^[ \t]*This is ApacheBench, Version ", re.MULTILINE)
_VALUE = re.compile(r"(?P<label>[A-Z][\w ./-]{2,40}): +(?P<value>\d{1,18}(?:\.\d{1,9})?)(?: .*)?")
_FAILURES = re.compile(r" *\((?:[A-Z][a-z]+: \d{1,18}(?:, )?)+\)")
_FAILURE = re.compile(r"([A-Z][a-z]+): (\d{1,18})")
_PERCENTILE = re.compile(r" *(\d{1,3})% +(\d{1,9})(?: \(longest request\))?")
_REQUIRED = ("Complete requests", "Failed requests", "Time taken for tests")


def read(file: SourceFile) -> ClientResult:
    if any(line.text == _PERCENTILES for line in islice(output_lines(file.path), 1)):
        raise ClientFormatError(
            "the percentiles that ab writes with -e state no number of requests (hint: import what ab prints, which "
            "has percentiles too, or the file of -g)"
        )
    run, notes = last_run(file.path, NAME, _BEGIN.match, _Run)
    stated = StatedTotals(attempted_per_s=run.values.get("Requests per second"))
    return only_total(file, NAME, run.total(), [*run.notes(), *notes], stated)


class _Run:
    """One run of ab: what it has printed. `values` has its figures by label."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._stated_s: dict[float, float] = {}
        self._is_html = False

    def add(self, text: str) -> None:
        if match := _VALUE.fullmatch(text):
            self.values.setdefault(match["label"], float(match["value"]))
        elif _FAILURES.fullmatch(text):
            self._failures = {kind.lower(): int(count) for kind, count in _FAILURE.findall(text)}
        elif (match := _PERCENTILE.fullmatch(text)) and int(match[1]) <= 100:
            self._stated_s[float(match[1])] = int(match[2]) / 1000
        self._is_html |= text.lstrip().startswith("<table")

    @property
    def _statuses(self) -> int:
        return int(self.values.get("Non-2xx responses", 0))

    @property
    def _broken(self) -> int:
        """The number of responses that broke off, or whose request could not be sent."""
        return self._failures.get("receive", 0) + int(self.values.get("Write errors", 0))

    @property
    def _failed_responses(self) -> int:
        return max(self._statuses + self._broken, self._failures.get("length", 0))

    def total(self) -> ClientInterval:
        """Return the total, whose times count from the beginning of the run.

        Raises ClientFormatError if figures are missing or impossible, and ValueError.
        """
        if self._is_html:
            raise ClientFormatError("ab's HTML is not read (hint: run ab without -w)")
        if missing := [label for label in _REQUIRED if label not in self.values]:
            raise ClientFormatError(
                f"the last run has no '{missing[0]}' (hint: ab prints its totals only when it completes; -r lets it "
                "continue after errors)"
            )
        complete = int(self.values["Complete requests"])
        if self._failed_responses > complete:
            raise ClientFormatError("more failed responses than complete requests")
        errors = {
            "status": self._statuses,
            "receive": self._broken,
            "length": self._failed_responses - self._statuses - self._broken,
            "connect": self._failures.get("connect", 0),
            "exception": self._failures.get("exceptions", 0),
        }
        if not self._failures:
            # ab explains its failed requests unless there are none.
            errors[""] = int(self.values["Failed requests"])
        completed = max(complete - self._failed_responses - errors.get("", 0), 0)
        stated_s = parsing.checked_percentiles_s(self._stated_s) if completed else {}
        length_s = parsing.checked_length_s(self.values["Time taken for tests"])
        return ClientInterval.stated(length_s, completed, errors, stated_s)

    def notes(self) -> list[str]:
        notes = failed_note(self._failed_responses, "request") if self._stated_s else []
        lengths = self._failures.get("length", 0)
        if lengths > self._statuses:
            notes.append(
                f"ab calls {count_text(lengths, 'response')} failed because the length differs from the first one's "
                "(hint: if lengths vary, run ab with -l)"
            )
        if lengths and (others := self._statuses + self._broken):
            notes.append(
                f"between {self._failed_responses} and {lengths + others} responses failed, because ab counts one with "
                f"an error status and another length twice; {self._failed_responses} are counted as failed"
            )
        return notes


# The file for gnuplot (`ab -g FILE`): tab-separated, one row per response, sorted by duration. `seconds` is when a
# request began, in whole seconds since the epoch, and `ttime` its duration in milliseconds. Requests are assumed to
# begin in the middle of their second. The file does not state which responses have an error status.

HEADER = "starttime\tseconds\tctime\tdtime\tttime\twait"
MS_NS = 1_000_000
_ROW = re.compile(r"[^\t]{1,40}\t(?P<seconds>\d{1,12})\t\d{1,12}\t\d{1,12}\t(?P<ttime>\d{1,12})\t\d{1,12}")


def read_gnuplot(file: SourceFile) -> ClientResult:
    requests = OperationTimes()
    notes = parsing.read_lines(file.path, partial(_add_row, requests))
    if notes:
        notes.append("rows are sorted by duration, so an incomplete file lacks the longest ones")
    notes.append("the file does not state which requests failed (hint: what ab prints does)")
    return requests.result(file, NAME, notes, empty="no rows")


def _add_row(requests: OperationTimes, line: str) -> None:
    if line == HEADER:
        return
    match = _ROW.fullmatch(line)
    if match is None:
        raise ValueError("not a row of ab's file for gnuplot")
    ttime_ms = int(match["ttime"])
    duration_ns = parsing.latency_ns(ttime_ms, MS_NS)
    requests.add("", int(parsing.checked_time_s(int(match["seconds"]) + 0.5 + ttime_ms / 1000)), duration_ns)


FORMATS = (
    Format(NAME, _SIGN.search, read, follows_output=True),
    Format("ab-gnuplot", re.compile(rf"\A{HEADER}").search, read_gnuplot),
)
