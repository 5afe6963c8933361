"""k6's outputs in the form of published ones, of 2021 to 2024; they are generated here, not by k6."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone

BEGIN_S = 1_795_000_000
COLUMNS = (
    *("check", "error", "error_code", "expected_response", "group", "method", "name", "proto", "scenario", "service"),
    *("status", "subproto", "tls_version", "url"),
)
# The samples of each request, in k6's order.
METRICS = (
    *("http_reqs", "http_req_duration", "http_req_blocked", "http_req_connecting", "http_req_tls_handshaking"),
    *("http_req_sending", "http_req_waiting", "http_req_receiving", "http_req_failed"),
)


@dataclass(frozen=True)
class Sample:
    metric: str
    time_ns: int
    value: float
    tags: dict[str, str]


def request(offset_ns: int, duration_ms: float, name: str = "read", status: int = 200, **tags: str) -> list[Sample]:
    """Return the samples of a request that ended `offset_ns` after BEGIN_S."""
    url = "http://127.0.4.1:8080/" + name
    has_failed = not 200 <= status < 400
    common = {"expected_response": str(not has_failed).lower(), "group": "", "method": "GET", "name": name}
    common |= {"proto": "HTTP/1.1", "scenario": "default", "status": str(status), "url": url}
    if has_failed:
        common["error_code"] = str(1000 + status) if status else "1212"
    all_tags = {tag: value for tag, value in {**common, **tags}.items() if value != "-"}
    values = {"http_reqs": 1.0, "http_req_duration": duration_ms, "http_req_failed": float(has_failed)}
    time_ns = BEGIN_S * 10**9 + offset_ns
    return [Sample(metric, time_ns, values.get(metric, 0.125), all_tags) for metric in METRICS]


def run() -> list[Sample]:
    """Return 40 requests within four seconds; the third second has none, and six requests failed."""
    samples = [Sample("vus", BEGIN_S * 10**9, 5, {})]
    for index in range(40):
        offset_ns = (index % 4 if index % 4 != 2 else 3) * 10**9 + index * 20 * 10**6 + 999
        status = {7: 503, 17: 503, 27: 0, 20: 404, 24: 404, 28: 404}.get(index, 200)
        name = "write" if index % 2 else "read"
        samples += request(offset_ns, 1.5 + index, name, status)
        samples.append(Sample("iterations", BEGIN_S * 10**9 + offset_ns, 1, {"scenario": "default"}))
    return samples


def rfc_3339(time_ns: int) -> str:
    time = datetime.fromtimestamp(time_ns // 10**9, timezone.utc)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time_ns % 10**9:09d}Z"


def json_text(samples: Iterable[Sample]) -> str:
    lines: list[dict[str, object]] = []
    declared: set[str] = set()
    for sample in samples:
        if sample.metric not in declared:
            declared.add(sample.metric)
            declaration = {"name": sample.metric, "type": "trend", "contains": "time"}
            lines.append({"type": "Metric", "data": declaration, "metric": sample.metric})
        data = {"time": rfc_3339(sample.time_ns), "value": sample.value, "tags": sample.tags}
        lines.append({"metric": sample.metric, "type": "Point", "data": data})
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def csv_text(samples: Iterable[Sample], time_format: str = "unix") -> str:
    units_ns = {"unix": 10**9, "unix_milli": 10**6, "unix_micro": 10**3, "unix_nano": 1}
    lines = [",".join(["metric_name", "timestamp", "metric_value", *COLUMNS, "extra_tags", "metadata"])]
    for sample in samples:
        unit_ns = units_ns.get(time_format)
        time = str(sample.time_ns // unit_ns) if unit_ns else rfc_3339(sample.time_ns)
        tags = [sample.tags.get(column, "") for column in COLUMNS]
        lines.append(",".join([sample.metric, time, f"{sample.value:f}", *tags, "", ""]))
    return "\n".join(lines) + "\n"
