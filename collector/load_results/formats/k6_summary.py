"""k6's summary as JSON: `k6 run --summary-export FILE`, and what a script's `handleSummary(data)` writes of `data`.

There are three layouts. `--summary-export` has the values of each metric directly; the data of `handleSummary` has them
in `values`, and states the run's duration; with `--new-machine-readable-summary`, both have a list of metrics. In the
first two, the metric `http_req_failed` counts the requests that failed as `passes`, because it counts how often it was
true. gRPC requests have no count in a summary. Times are milliseconds, whatever `summaryTimeUnit` is.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collector.load_results.client_format import CommandTimes, Format, Options, ResultClock
from collector.load_results.client_latency import Latency
from collector.load_results.client_result import ClientInterval, ClientResult, counted, failed_note
from collector.load_results.k6_samples import GRPC, HTTP
from collector.load_results.parsing.command_output import earlier_runs, only_total
from collector.load_results.parsing.field_values import checked_count, checked_length_s, decimal, stated_latency
from collector.load_results.parsing.json_objects import json_objects
from collector.printable import count_text

NAME = "k6-summary"
EXPECTED = f"{HTTP}{{expected_response:true}}"
MS_PER_S = 1000
_METRICS = re.compile(r'"metrics":\s*[{\[]')
_PERCENTILE = re.compile(r"p\(?(\d{1,3}(?:\.\d{1,6})?)\)?")
_RANKS = {"min": 0.0, "med": 50.0, "max": 100.0}


def recognises(text: str) -> bool:
    # A line of k6's JSON output also begins with a bracket, but does not contain all metrics.
    begins = re.search(r"^[ \t]*\{", text, re.MULTILINE)
    return bool(begins and _METRICS.search(text) and re.search(r'"(?:iterations|http_reqs|vus|data_sent)"', text))


def read(path: Path, times: CommandTimes, _options: Options) -> ClientResult:
    summaries = list(filter(None, map(_summary, json_objects(path))))
    if not summaries:
        raise ValueError("no metrics")
    summary = summaries[-1]
    notes = [*summary.notes(), *earlier_runs(len(summaries) - 1, "k6")]
    return only_total((NAME, "k6"), summary.total(), path, times, notes)


FORMATS = (Format(NAME, recognises, read, follows_output=True, clock=ResultClock.STEADY),)


@dataclass(frozen=True)
class _Summary:
    """A summary: the values of each metric, and the run's duration in milliseconds if it is stated."""

    metrics: Mapping[str, Mapping[str, Any]]
    length_ms: object = None

    def total(self) -> ClientInterval:
        """Return the total, whose times count from the beginning of the run. Raises one of MALFORMED."""
        if "http_reqs" not in self.metrics:
            reason = "gRPC requests have no count" if GRPC in self.metrics else "no HTTP requests"
            raise ValueError(f"{reason} (hint: import the file of k6 run --out json=FILE)")
        requests = self.metrics["http_reqs"]
        attempted, failed = checked_count(requests["count"]), self._failed
        length_s = float(self.length_ms) / MS_PER_S if isinstance(self.length_ms, int | float) else None
        if length_s is None:
            length_s = attempted / decimal(requests["rate"])
        return counted(0.0, checked_length_s(length_s), attempted - failed, failed, self._latency())

    @property
    def _failed(self) -> int:
        """The number of failed requests; versions before 0.31 do not state it."""
        values = self.metrics.get("http_req_failed", {})
        return checked_count(values.get("passes", values.get("matches", 0)))

    def _latency(self) -> Latency | None:
        """Return the latencies of requests that succeeded; those of all requests if k6 does not state the former."""
        values = self.metrics.get(EXPECTED) or self.metrics.get(HTTP, {})
        stated_s = {}
        for key, value_ms in values.items():
            match = _PERCENTILE.fullmatch(key)
            rank = float(match[1]) if match else _RANKS.get(key)
            if rank is not None and rank <= 100:
                stated_s[rank] = decimal(value_ms) / MS_PER_S
        return stated_latency(stated_s) if stated_s else None

    def notes(self) -> list[str]:
        notes = failed_note(self._failed, "request") if EXPECTED not in self.metrics else []
        if "http_req_failed" not in self.metrics:
            notes.append("the summary does not state how many requests failed; all are counted as completed")
        if dropped := checked_count(self.metrics.get("dropped_iterations", {}).get("count", 0)):
            notes.append(f"k6 dropped {count_text(dropped, 'iteration')}: the load was below the stated rate")
        if GRPC in self.metrics:
            notes.append("gRPC requests are not counted, because a summary has no count of them")
        return notes


def _summary(content: Mapping[str, Any]) -> _Summary | None:
    """Return the summary in one of the three layouts; None if an object is none."""
    if "results" in content and isinstance(content["results"].get("metrics"), list):
        metrics = {str(metric["name"]): metric["values"] for metric in content["results"]["metrics"]}
        return _Summary(metrics, decimal(content["config"]["duration"]) * MS_PER_S)
    if "metrics" not in content:
        return None
    metrics = {name: values.get("values", values) for name, values in content["metrics"].items()}
    return _Summary(metrics, content.get("state", {}).get("testRunDurationMs"))
