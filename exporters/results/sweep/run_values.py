"""Throughput, errors and latency of one run of a sweep, as the clients or the servers measured them; also as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any

import msgspec

from collector.load_results.client_result import ClientResult, Latency
from collector.model import histogram
from collector.model.histogram import Buckets
from collector.node.metrics.requests import COUNTED, OPERATIONS
from exporters.results.summary.client_values import combined_latency, phase_operations, rate_of
from exporters.results.summary.phase_summary import failed
from exporters.rows.columns import MS, Cell, cell_number
from exporters.rows.merged_rows import TOTAL
from exporters.rows.operation_columns import TOTAL_RATE

CLIENT, SERVER = "client", "server"
"""Where values come from: the results of the load generators, or the servers' operations."""
VERSION = 2
"""The version of the values as JSON."""


@dataclass(frozen=True)
class RunValues:
    """The values of one run's measured phases; None stands for unknown.

    ops_per_s        completed operations per second.
    whole_ops_per_s  the same for the whole run, including the warm-up; None also if there is no warm-up.
    operations       the number of operations whose latency is known.
    attempts         the number of operations, including failed ones.
    errors           the number of failed operations.
    mean_ms          the mean latency.
    latency_kind     "response" or "service" for clients, SERVER for servers; "" if the latency is unknown.
    latency          the clients' latencies.
    buckets          the servers' latencies.
    intervals_missing  the number of intervals that nodes lack; None if it is unknown.
    remark           which nodes lack which intervals; "" if none do.
    """

    source: str
    ops_per_s: float | None
    whole_ops_per_s: float | None = None
    operations: float = 0.0
    attempts: float | None = None
    errors: float | None = None
    mean_ms: float | None = None
    latency_kind: str = ""
    latency: Latency | None = None
    buckets: Buckets | None = None
    intervals_missing: float | None = None
    remark: str = ""


def client_run_values(
    results: Sequence[ClientResult], measured: tuple[float, float], whole: tuple[float, float] | None
) -> RunValues:
    """Return the values that clients measured in the time ranges (see `client_span`)."""
    parts = phase_operations(results, *measured)
    totals = [part.total for part in parts if part.total]
    kind, latency = combined_latency(totals)
    completed, failed = (sum(total.completed for total in totals), sum(total.failed for total in totals))
    mean_s = None if latency is None else latency.mean_s
    return RunValues(
        CLIENT,
        rate_of(parts) if totals else None,
        None if whole is None else rate_of(phase_operations(results, *whole)),
        completed,
        completed + failed if totals else None,
        failed if totals else None,
        None if mean_s is None else mean_s * MS,
        kind,
        latency,
    )


def server_run_values(
    measured: Mapping[str, Cell],
    buckets: Sequence[Buckets | None],
    warm_up: tuple[Mapping[str, Cell], float, float] | None,
) -> RunValues:
    """Return the values that servers measured.

    `measured` has the columns of the cluster for the measured phases (see `phase_values`), and `buckets` the histograms
    of its operations in COUNTED. `warm_up` has the columns for the warm-up, its length and that of the measured phases,
    in seconds. As Cassandra does, this counts failed operations as operations.
    """
    rate = _total(measured, TOTAL_RATE, "_per_s")
    whole = None
    if warm_up is not None and rate is not None:
        columns, warm_up_s, measured_s = warm_up
        before = _total(columns, TOTAL_RATE, "_per_s")
        whole = None if before is None else (before * warm_up_s + rate * measured_s) / (warm_up_s + measured_s)
    operations = _total(measured, TOTAL)
    means = [
        (count, cell_number(measured.get(f"{operation.word}_mean_ms")))
        for operation in COUNTED
        if (count := cell_number(measured.get(operation.plural)))
    ]
    occurred = [operation.is_usual or bool(measured.get(operation.plural)) for operation in COUNTED]
    known = [part for part, is_needed in zip(buckets, occurred, strict=True) if part is not None and is_needed]
    return RunValues(
        SERVER,
        rate,
        whole,
        operations or 0.0,
        operations,
        failed(measured),
        weighted_mean(means),
        SERVER if known else "",
        buckets=histogram.merge(known) if len(known) == sum(occurred) else None,
    )


def weighted_mean(pairs: Sequence[tuple[float, float | None]]) -> float | None:
    """Return the mean of values with their weights; None if a value is unknown or there are none."""
    weight = sum(weight for weight, _ in pairs)
    if not weight or any(value is None for _, value in pairs):
        return None
    return sum(weight * value for weight, value in pairs if value is not None) / weight


def _total(columns: Mapping[str, Cell], name: str, end: str = "") -> float | None:
    """Return a total over operations; None if the part of reads or of writes, `reads` plus `end`, is unknown."""
    parts = [cell_number(columns.get(f"{operation.plural}{end}")) for operation in OPERATIONS if operation.is_usual]
    return None if None in parts else cell_number(columns.get(name))


def content_of_values(values: RunValues) -> dict[str, Any]:
    """Return the values as content for JSON, which has no infinity: the last bucket's bound is left out."""
    content = {"version": VERSION, **asdict(replace(values, latency=None, buckets=None))}
    if values.latency is not None:
        content["latency"] = {
            "counts": list(values.latency.counts.items()),
            "stated_s": list(values.latency.stated_s.items()),
        }
    if values.buckets is not None:
        content["buckets"] = {
            "upper_bounds": list(values.buckets.upper_bounds[:-1]),
            "counts": list(values.buckets.counts),
            "low": values.buckets.low,
        }
    return content


def values_of_content(content: Any) -> RunValues:
    """Return the values in decoded JSON. Raises ValueError if it is malformed or of another version."""
    try:
        if content["version"] != VERSION or content["source"] not in (CLIENT, SERVER):
            raise ValueError("another version")
        if (latency := content.get("latency")) is not None:
            content = {**content, "latency": {name: dict(pairs) for name, pairs in latency.items()}}
        if (buckets := content.get("buckets")) is not None:
            content = {**content, "buckets": {**buckets, "upper_bounds": [*buckets["upper_bounds"], inf]}}
        values = msgspec.convert(content, RunValues, strict=False)
    except (KeyError, TypeError, AttributeError, msgspec.ValidationError) as error:
        raise ValueError(f"malformed: {error}") from None
    if values.buckets is not None and len(values.buckets.upper_bounds) != len(values.buckets.counts):
        raise ValueError("the numbers of bounds and counts differ")
    return values
