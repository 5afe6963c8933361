"""The columns of client results in a summary: throughput, errors and latency as clients saw them in one phase.

The columns of all operations begin with `client_`, those of one operation with `client_OPERATION_`:

    client_ops_per_s     completed operations per second.
    client_errors_per_s  failed operations per second.
    client_error_share   failed operations as a share of all operations.
    client_mean_ms, client_p50_ms, client_p95_ms, client_p99_ms, client_p999_ms
                         latency: the response time if all results have it, otherwise the service time.
    client_count         the number of these latencies.
    client_latency       which of these it is: "response" or "service".
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from collector.load_results.client_result import (
    ClientInterval,
    ClientResult,
    Latency,
    Operation,
    merged_latency,
    total_of,
)
from exporters.results.summary.client_span import amounts_within, client_span, intervals_of, lies_inside
from exporters.results.summary.phase_summary import PhaseSummary
from exporters.rows.cells import rounded
from exporters.rows.columns import MS
from exporters.rows.formulas import Cell, times

UNKNOWN_RATE = "the clients' throughput is unknown, because no time is covered by whole intervals of all client results"
LATENCY_KINDS = ("response", "service")
"""The kinds of latency in the order of preference."""
PERCENTILES = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


def with_client_values(summaries: Sequence[PhaseSummary], results: Sequence[ClientResult]) -> list[PhaseSummary]:
    """Return the summaries with the columns and the notes of client results."""
    notes = tuple(f"{result.source}: {text}" for result in results for text in result.notes)
    return [_with_client_values(summary, results, notes) for summary in summaries]


def _with_client_values(summary: PhaseSummary, results: Sequence[ClientResult], notes: tuple[str, ...]) -> PhaseSummary:
    values = client_values(results, summary.begin_s, summary.end_s)
    if results and "client_ops_per_s" not in values:
        notes += (UNKNOWN_RATE,)
    return replace(summary, values={**summary.values, **values}, client_notes=notes)


def client_values(results: Sequence[ClientResult], begin_s: float, end_s: float) -> dict[str, Cell]:
    """Return the columns of a phase; {} if no interval lies completely inside it.

    Rates are those of the results' span in the phase (see `client_span`).
    """
    parts = phase_operations(results, begin_s, end_s)
    if not any(part.total for part in parts):
        return {}
    values = _columns("client", parts)
    by_name: defaultdict[str, list[PhaseOperation]] = defaultdict(list)
    for part in parts:
        by_name[part.name].append(part)
    for name, of_name in by_name.items():
        if name and any(part.total for part in of_name):
            values |= _columns(f"client_{name}", of_name)
    return values


@dataclass(frozen=True)
class PhaseOperation:
    """An operation of a result in a phase.

    name       the part of its columns' names; "" if there is none.
    length_s   the length of the span of all results; 0 if there is no span.
    completed  the number of operations in the span that succeeded.
    failed     the number of operations in the span that failed.
    total      the total of the intervals that lie completely inside the phase; None if there are none.
    """

    name: str
    length_s: float
    completed: float
    failed: float
    total: ClientInterval | None


def phase_operations(results: Sequence[ClientResult], begin_s: float, end_s: float) -> list[PhaseOperation]:
    """Return all operations of several results in a phase."""
    span = client_span(results, begin_s, end_s) or (begin_s, begin_s)
    parts = []
    for operation in (operation for result in results for operation in result.operations):
        amounts = amounts_within(intervals_of(operation), *span)
        total = total_within(operation, begin_s, end_s)
        parts.append(PhaseOperation(column_name(operation.name), span[1] - span[0], *amounts, total))
    return parts


def rate_of(parts: Sequence[PhaseOperation]) -> float | None:
    """Return the completed operations per second of operations in one phase; None if they are unknown."""
    length_s = parts[0].length_s if parts else 0.0
    return sum(part.completed for part in parts) / length_s if length_s else None


def column_name(operation: str) -> str:
    """Return an operation's name as a part of a column's name; "" if it has no letters or digits."""
    return _NOT_IN_NAMES.sub("_", operation.lower()).strip("_")


def total_within(operation: Operation, begin_s: float, end_s: float) -> ClientInterval | None:
    """Return the total of an operation's intervals that lie completely inside a time range; None if there are none.

    If all intervals lie inside the range, latencies that cannot be computed from them are taken from the total that the
    load generator states.
    """
    intervals = intervals_of(operation)
    inside = [interval for interval in intervals if lies_inside(interval, begin_s, end_s)]
    total = total_of(inside)
    if total is not None and operation.total is not None and len(inside) == len(intervals):
        return replace(
            total,
            response=total.response or operation.total.response,
            service=total.service or operation.total.service,
        )
    return total


def _columns(prefix: str, parts: Sequence[PhaseOperation]) -> dict[str, Cell]:
    """Return the columns of operations of one phase."""
    values: dict[str, Cell] = {}
    rate = rate_of(parts)
    if rate is not None:
        completed, failed = (sum(part.completed for part in parts), sum(part.failed for part in parts))
        values = {f"{prefix}_ops_per_s": rounded(rate), f"{prefix}_errors_per_s": rounded(failed / parts[0].length_s)}
        if completed + failed:
            values[f"{prefix}_error_share"] = failed / (completed + failed)
    totals = [part.total for part in parts if part.total]
    kind, latency = combined_latency(totals)
    if latency is not None:
        values[f"{prefix}_latency"] = kind
        values[f"{prefix}_count"] = sum(latency.counts.values()) or sum(total.completed for total in totals)
        values[f"{prefix}_mean_ms"] = rounded(times(MS, latency.mean_s))
        percentiles = latency.percentiles_s(PERCENTILES.values())
        for name, value_s in zip(PERCENTILES, percentiles, strict=True):
            values[f"{prefix}_{name}_ms"] = rounded(times(MS, value_s))
    return values


def combined_latency(totals: Iterable[ClientInterval]) -> tuple[str, Latency | None]:
    """Return the latencies of several operations and their kind; None if they cannot be combined."""
    parts = list(totals)
    for kind in LATENCY_KINDS:
        combined = latency_of_kind(parts, kind)
        if combined is not None:
            return kind, combined
    return "", None


def latency_of_kind(totals: Iterable[ClientInterval], kind: str) -> Latency | None:
    """Return the latencies of several operations; `kind` is one of LATENCY_KINDS. None if they cannot be combined."""
    return merged_latency([getattr(total, kind) for total in totals if total.completed])
