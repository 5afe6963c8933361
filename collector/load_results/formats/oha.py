"""oha's JSON (`oha --output-format json`; `oha --json` in earlier versions).

Requests that the end of the run cut off ("aborted due to deadline") are neither completed nor failed. Latencies are
those of responses with any status; with `--stats-success-breakdown`, those with a status below 400 are also stated.
They are service times, or response times with `--latency-correction`, which the file does not state, so it is looked
for in the command.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from collector.load_results.client_format import CommandTimes, Format, Options, ResultClock
from collector.load_results.client_result import ClientInterval, ClientResult, StatedTotals, failed_note
from collector.load_results.parsing.command_output import earlier_runs, only_total
from collector.load_results.parsing.field_values import (
    checked_count,
    checked_length_s,
    decimal,
    stated_latency,
    status_errors,
)
from collector.load_results.parsing.json_objects import json_objects
from collector.load_results.parsing.labels import Labels
from collector.printable import count_text

NAME = "oha"
DEADLINE = "aborted due to deadline"
CORRECTION = "--latency-correction"
KEYS = ("successRate", "latencyPercentiles", "statusCodeDistribution")
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,6})?)")


def recognises(text: str) -> bool:
    return all(f'"{key}"' in text for key in KEYS) and "\n{" in f"\n{text}"


def read(path: Path, times: CommandTimes, _options: Options) -> ClientResult:
    reports = [content for content in json_objects(path) if "summary" in content]
    if not reports:
        raise ValueError("no summary")
    report = _Report(reports[-1])
    total = report.total(is_response=CORRECTION in " ".join(times.words))
    notes = [*report.notes(), *earlier_runs(len(reports) - 1, NAME)]
    return only_total((NAME, NAME), total, path, times, notes, report.stated)


FORMATS = (Format(NAME, recognises, read, follows_output=True, clock=ResultClock.STEADY),)


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
            if (match := _PERCENTILE.fullmatch(key)) and value_s is not None
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
