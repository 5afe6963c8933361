"""Counts the requests in k6's samples (points), for both its JSON and its CSV output.

A sample's time is when the request ended. k6 measures `http_req_duration` from when the request is sent (excluding
connecting), whatever schedule an executor follows, so it is the service time. The tag `name` names the operation; k6
sets it to the URL if the script does not set it, and then the name is the method and the path. Iterations are not
operations.
"""

import re
from collections import Counter
from collections.abc import Mapping

from collector.load_results.client_format import ClientFormatError
from collector.load_results.client_result import ClientResult, Operation
from collector.load_results.operation_times import OperationTimes
from collector.load_results.parsing.field_values import FIRST_ERROR_STATUS, latency_ns, rfc3339_s, unix_time_s
from collector.printable import count_text

HTTP, GRPC = "http_req_duration", "grpc_req_duration"
TOTALS = ("http_reqs", "http_req_failed", "dropped_iterations")
METRICS = frozenset((HTTP, GRPC, *TOTALS))
"""The metrics that are read."""
MS_NS = 1_000_000
MAX_COUNT = 10**9
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*(?P<path>[^?#]*)")


class K6Samples:
    """The requests of a result, and what k6 itself counts."""

    def __init__(self) -> None:
        self._times = OperationTimes()
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
        end_s = rfc3339_s(time) if "T" in time else unix_time_s(time)
        duration_ns = latency_ns(value, MS_NS)
        if metric == GRPC and not tags.get("status"):
            # k6 writes such a sample when a stream ends.
            self._grpc_streams += 1
            return
        kind = _grpc_error(tags) if metric == GRPC else self._http_error(tags)
        name = _grpc_name(tags) if metric == GRPC else _http_name(tags)
        if kind is None:
            self._times.add(name, end_s, duration_ns)
        else:
            self._times.add_error(name, end_s, kind)

    def _http_error(self, tags: Mapping[str, str]) -> str | None:
        """Return the kind of a failed request's error; None if the request succeeded."""
        status, code, expected = (tags.get(tag, "") for tag in ("status", "error_code", "expected_response"))
        if expected not in ("true", "false", ""):
            raise ValueError(f"expected_response is neither true nor false: {expected}")
        is_error_status = status.isdecimal() and int(status) >= FIRST_ERROR_STATUS
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

    def take(self) -> tuple[Operation, ...]:
        """Return the total of each operation's requests since the last call, and forget them."""
        return self._times.take()

    def result(self, format_name: str, source: str, runs: int, notes: list[str]) -> ClientResult:
        """Return the result; `runs` is the number of k6's runs in the file. Raises ClientFormatError."""
        operations = self._times.operations()
        if not operations:
            raise ClientFormatError(f"no requests ({HTTP} or {GRPC})")
        return ClientResult(format_name, "k6", source, operations, notes=(*notes, *self._notes(runs)))

    def _notes(self, runs: int) -> list[str]:
        totals = self._totals
        notes = {
            f"the file has {count_text(runs, 'run')} of k6": runs > 1,
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
        omitted = self._times.notes("request", " (hint: set the tag `name` in the k6 script)")
        return [*(note for note, applies in notes.items() if applies), *omitted]


def _grpc_error(tags: Mapping[str, str]) -> str | None:
    return None if tags["status"] == "0" else f"gRPC status {tags['status']}"


def _grpc_name(tags: Mapping[str, str]) -> str:
    name = tags.get("name", "")
    return name if name and "/" not in name else tags.get("method") or name


def _http_name(tags: Mapping[str, str]) -> str:
    name = tags.get("name") or tags.get("url", "")
    url = _URL.fullmatch(name.partition("?")[0].partition("#")[0])
    return f"{tags.get('method', '')} {url['path'] or '/'}".strip() if url else name
