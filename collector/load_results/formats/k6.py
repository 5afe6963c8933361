"""k6's results: its samples (points) as JSON or as CSV, and its summary as JSON.

A sample's time is when the request ended. k6 measures `http_req_duration` from when the request is sent (excluding
connecting), whatever schedule an executor follows, so it is the service time. The tag `name` names the operation; k6
sets it to the URL if the script does not set it, and then the name is the method and the path. Iterations are not
operations.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from collector.load_results import parsing
from collector.load_results.client_format import Format, ResultClock, SourceFile
from collector.load_results.client_result import ClientInterval, ClientResult, applicable, failed_note
from collector.load_results.command_output import earlier_runs, only_total
from collector.load_results.operation_times import OperationTimes
from collector.load_results.parsing import GrowingLines, checked_count, decimal
from collector.printable import count_text

HTTP, GRPC = "http_req_duration", "grpc_req_duration"
TOTALS = ("http_reqs", "http_req_failed", "dropped_iterations")
METRICS = frozenset((HTTP, GRPC, *TOTALS))
"""The metrics that are read."""
MS_NS = 1_000_000
MAX_COUNT = 10**9
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*(?P<path>[^?#]*)")


class _Samples:
    """The requests of a result, and what k6 itself counts. `runs` is the number of k6's runs in the file."""

    def __init__(self) -> None:
        self.runs = 0
        self.times = OperationTimes()
        self._totals: Counter[str] = Counter()
        self._http_requests = 0
        self._failed_http_requests = 0
        self._http_requests_without_result = 0
        self._grpc_streams = 0

    def add(self, metric: str, time: str, value: float, tags: Mapping[str, str]) -> None:
        """Add a sample of one of METRICS. Raises ValueError."""
        if metric in TOTALS:
            if not 0 <= value <= MAX_COUNT:
                raise ValueError(f"not an operation count: {value:g}")
            self._totals[metric] += round(value)
            return
        end_s = parsing.rfc3339_s(time) if "T" in time else parsing.unix_time_s(time)
        duration_ns = parsing.latency_ns(value, MS_NS)
        if metric == HTTP:
            name, kind = _http_name(tags), self._http_error(tags)
        elif status := tags.get("status"):
            name, kind = tags.get("name", ""), None if status == "0" else f"gRPC status {status}"
            if not name or "/" in name:
                name = tags.get("method") or name
        else:
            # k6 writes such a sample when a stream ends.
            self._grpc_streams += 1
            return
        if kind is None:
            self.times.add(name, end_s, duration_ns)
        else:
            self.times.add_error(name, end_s, kind)

    def _http_error(self, tags: Mapping[str, str]) -> str | None:
        """Return the kind of a failed request's error; None if the request succeeded."""
        status, code, expected = (tags.get(tag, "") for tag in ("status", "error_code", "expected_response"))
        if expected not in ("true", "false", ""):
            raise ValueError(f"expected_response is neither true nor false: {expected}")
        is_error_status = status.isdecimal() and int(status) >= parsing.FIRST_ERROR_STATUS
        # Some versions of k6 expect a response whose body timed out.
        has_failed = status == "0" or (expected == "false" if expected else bool(code) or is_error_status)
        self._http_requests += 1
        self._failed_http_requests += has_failed
        self._http_requests_without_result += not (expected or code or status)
        if not has_failed:
            return None
        if code and not is_error_status:
            return f"error code {code}"
        return f"status {status}" if status not in ("", "0") else ""

    def result(self, file: SourceFile, notes: list[str]) -> ClientResult:
        return self.times.result(file, "k6", [*notes, *self._notes()], f"no requests ({HTTP} or {GRPC})")

    def _notes(self) -> list[str]:
        totals = self._totals
        notes = {
            f"the file has {count_text(self.runs, 'run')} of k6": self.runs > 1,
            f"k6 dropped {count_text(totals['dropped_iterations'], 'iteration')}: the load was below the stated rate": (
                totals["dropped_iterations"]
            ),
            f"k6 counts {count_text(totals['http_reqs'], 'HTTP request')} (http_reqs), "
            f"the file has the durations of {self._http_requests}": (
                totals["http_reqs"] and totals["http_reqs"] != self._http_requests
            ),
            f"k6 counts {count_text(totals['http_req_failed'], 'failed HTTP request')} (http_req_failed), "
            f"by their tags {self._failed_http_requests} failed": (
                totals["http_reqs"] and totals["http_req_failed"] != self._failed_http_requests
            ),
            f"{count_text(self._http_requests_without_result, 'HTTP request')} without the tags expected_response, "
            "status and error_code are counted as completed": self._http_requests_without_result,
            f"{count_text(self._grpc_streams, 'gRPC stream')} are not counted as operations": self._grpc_streams,
        }
        omitted = self.times.notes("request", " (hint: set the tag `name` in the k6 script)")
        return [*applicable(notes), *omitted]


def _http_name(tags: Mapping[str, str]) -> str:
    name = tags.get("name") or tags.get("url", "")
    url = _URL.fullmatch(name.partition("?")[0].partition("#")[0])
    return f"{tags.get('method', '')} {url['path'] or '/'}".strip() if url else name


# JSON: `k6 run --out json=FILE` writes one object per line, which declares a metric or is a sample of it.

_METRIC = re.compile(rf'"metric":\s*"(?:{"|".join(sorted(METRICS))})"')
_FIRST_LINE = re.compile(r'\A\s*\{(?=.*"type":\s*"(?:Metric|Point)")(?=.*"metric":\s*").*"data":\s*\{')


def read_json(file: SourceFile) -> ClientResult:
    samples = _JsonSamples()
    return samples.result(file, parsing.read_lines(file.path, samples.add_line))


def growing_json(_head: bytes, _options: Mapping[str, str]) -> GrowingLines:
    samples = _JsonSamples()
    return GrowingLines(samples.add_line, samples.times.take)


class _JsonSamples(_Samples):
    def add_line(self, line: str) -> None:
        text = line.strip()
        if not (text.startswith("{") and text.endswith("}")):
            raise ValueError("not a JSON object")
        if not _METRIC.search(text):
            return
        content = json.loads(text)
        metric, kind, data = content["metric"], content["type"], content["data"]
        if kind == "Point" and metric in METRICS:
            tags = {str(tag): str(value) for tag, value in (data.get("tags") or {}).items()}
            self.add(metric, str(data["time"]), decimal(data["value"]), tags)
        # k6 declares each metric once.
        self.runs += kind == "Metric" and metric == HTTP


# CSV: `k6 run --out csv=FILE` writes one sample per line, with a column for each of k6's own tags. Times are whole
# seconds unless K6_CSV_TIME_FORMAT states another format; all of them are recognised.

_FIRST_COLUMNS = ("metric_name", "timestamp", "metric_value")


def read_csv(file: SourceFile) -> ClientResult:
    samples = _CsvSamples()
    return samples.result(file, parsing.read_lines(file.path, samples.add_line))


class _CsvSamples(_Samples):
    _columns: Sequence[str] = ()

    def add_line(self, line: str) -> None:
        metric = line.partition(",")[0]
        if metric == _FIRST_COLUMNS[0]:
            # Files that were concatenated have several headers, which may differ.
            self._columns = parsing.csv_fields(line)
            self.runs += 1
        if tuple(self._columns[: len(_FIRST_COLUMNS)]) != _FIRST_COLUMNS:
            raise ValueError(f"not the header of k6's CSV output, which begins with {','.join(_FIRST_COLUMNS)}")
        if metric not in METRICS:
            return
        tags = parsing.csv_row(line, self._columns)
        self.add(metric, tags["timestamp"], decimal(tags["metric_value"]), tags)


# Summary: `k6 run --summary-export FILE`, and what a script's `handleSummary(data)` writes of `data`. There are three
# layouts. `--summary-export` has the values of each metric directly; the data of `handleSummary` has them in `values`,
# and states the run's duration; with `--new-machine-readable-summary`, both have a list of metrics. In the first two,
# the metric `http_req_failed` counts the requests that failed as `passes`, because it counts how often it was true.
# gRPC requests have no count in a summary. Times are milliseconds, whatever `summaryTimeUnit` is.

_EXPECTED = f"{HTTP}{{expected_response:true}}"
MS_PER_S = 1000
_METRIC_LIST = re.compile(r'"metrics":\s*[{\[]')


def recognises_summary(text: str) -> bool:
    # A line of k6's JSON output also begins with a bracket, but does not contain all metrics.
    begins = re.search(r"^[ \t]*\{", text, re.MULTILINE)
    return bool(begins and _METRIC_LIST.search(text) and re.search(r'"(?:iterations|http_reqs|vus|data_sent)"', text))


def read_summary(file: SourceFile) -> ClientResult:
    summaries = list(filter(None, map(_summary, parsing.json_objects(file.path))))
    if not summaries:
        raise ValueError("no metrics")
    summary = summaries[-1]
    notes = [*summary.notes(), *earlier_runs(len(summaries) - 1, "k6")]
    return only_total(file, "k6", summary.total(), notes)


@dataclass(frozen=True)
class _Summary:
    """A summary: the values of each metric, and the run's duration in milliseconds if it is stated."""

    metrics: Mapping[str, Mapping[str, Any]]
    length_ms: Any = None

    def total(self) -> ClientInterval:
        """Return the total, whose times count from the beginning of the run. Raises one of MALFORMED."""
        if "http_reqs" not in self.metrics:
            reason = "gRPC requests have no count" if GRPC in self.metrics else "no HTTP requests"
            raise ValueError(f"{reason} (hint: import the file of k6 run --out json=FILE)")
        requests = self.metrics["http_reqs"]
        attempted, failed = checked_count(requests["count"]), self._failed
        is_stated = isinstance(self.length_ms, int | float)
        length_s = parsing.checked_length_s(
            self.length_ms / MS_PER_S if is_stated else attempted / decimal(requests["rate"])
        )
        # Latencies of requests that succeeded; those of all requests if k6 does not state the former.
        values = self.metrics.get(_EXPECTED) or self.metrics.get(HTTP, {})
        stated_s = parsing.checked_percentiles_s(parsing.percentiles_s(values, MS_PER_S))
        return ClientInterval.stated(length_s, parsing.succeeded(attempted, failed), failed, stated_s)

    @property
    def _failed(self) -> int:
        """The number of failed requests; versions before 0.31 do not state it."""
        values = self.metrics.get("http_req_failed", {})
        return checked_count(values.get("passes", values.get("matches", 0)))

    def notes(self) -> list[str]:
        notes = failed_note(self._failed, "request") if _EXPECTED not in self.metrics else []
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


FORMATS = (
    Format("k6-json", _FIRST_LINE.search, read_json, growing_json),
    Format("k6-csv", re.compile(rf"\A{','.join(_FIRST_COLUMNS)}").search, read_csv),
    Format("k6-summary", recognises_summary, read_summary, follows_output=True, clock=ResultClock.STEADY),
)
