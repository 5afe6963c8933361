"""What `hey` prints when it ends.

Its requests per second count all requests, also those without a response ("Error distribution"). hey keeps the status
and the latency of one million responses at most, the first ones. Latencies are those of responses with any status, from
when a request is sent (service time): with `-q`, a worker waits for its turn, and hey does not count the waiting.
"""

import re
from pathlib import Path

from collector.load_results.client_format import ClientFormatError, CommandTimes, Format, Options, ResultClock
from collector.load_results.client_result import ClientInterval, ClientResult, StatedTotals, failed_note
from collector.load_results.parsing.command_output import last_run, only_total
from collector.load_results.parsing.field_values import checked_length_s, stated_latency, status_errors
from collector.load_results.parsing.labels import Labels

NAME = "hey"
MAX_RESPONSES = 1_000_000
SECTIONS = ("Summary:", "Latency distribution:", "Status code distribution:", "Error distribution:")
_SIGN = re.compile(r"^Summary:\n  Total:\t[\d.]+ secs\n  Slowest:\t", re.MULTILINE)
_TOTAL = re.compile(r"  Total:\t(\d{1,12}\.\d{4}) secs")
_LIMITS = re.compile(r"  (Slowest|Fastest):\t(\d{1,12}\.\d{4}) secs")
_RATE = re.compile(r"  Requests/sec:\t(\d{1,15}\.\d{4})")
# Version 0.1.5 writes two percent signs.
_PERCENTILE = re.compile(r"  (\d{1,2})%{1,2} in (\d{1,12}\.\d{4}) secs")
_COUNT = re.compile(r"  \[(?P<key>\d{1,18})\]\t(?P<text>.*)")
_RESPONSES = re.compile(r"\d{1,18} responses")


def read(path: Path, times: CommandTimes, _options: Options) -> ClientResult:
    run, notes = last_run(path, NAME, SECTIONS[0].__eq__, _Run)
    run.check()
    stated = StatedTotals(attempted_per_s=run.rate_per_s)
    return only_total((NAME, NAME), run.total(), path, times, [*run.notes(), *notes], stated)


FORMATS = (Format(NAME, _SIGN, read, follows_output=True, clock=ResultClock.STEADY),)


class _Run:
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
        elif self._section == "Latency distribution:" and (match := _PERCENTILE.fullmatch(text)):
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
