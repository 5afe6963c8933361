"""The values of a run as JSON."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from math import inf
from typing import Any

from collector.load_results.client_result import Latency
from collector.model.histogram import Buckets
from exporters.results.sweep.run_values import CLIENT, SERVER, RunValues

VERSION = 2
_NUMBERS = ("ops_per_s", "whole_ops_per_s", "attempts", "errors", "mean_ms", "intervals_missing")


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
        numbers = {name: None if content[name] is None else float(content[name]) for name in _NUMBERS}
        return RunValues(
            content["source"],
            operations=float(content["operations"]),
            latency_kind=str(content["latency_kind"]),
            latency=_latency(content["latency"]),
            remark=str(content["remark"]),
            buckets=_buckets(content["buckets"]),
            **numbers,
        )
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"malformed: {error}") from None


def _latency(content: Mapping[str, Any] | None) -> Latency | None:
    if content is None:
        return None
    counts = {int(value): int(count) for value, count in content["counts"]}
    return Latency(counts, {float(percentage): float(value) for percentage, value in content["stated_s"]})


def _buckets(content: Mapping[str, Any] | None) -> Buckets | None:
    if content is None:
        return None
    bounds, counts = (tuple(map(float, content[name])) for name in ("upper_bounds", "counts"))
    if len(bounds) + 1 != len(counts):
        raise ValueError("the numbers of bounds and counts differ")
    return Buckets((*bounds, inf), counts, float(content["low"]))
