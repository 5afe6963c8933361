"""The share of failed operations in a phase, in one column for runs with and without client results."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from collector.node.metrics.requests import COUNTED, ERRORS
from exporters.results.summary.phase_summary import PhaseSummary
from exporters.rows.formulas import Cell
from exporters.rows.merged_rows import TOTAL

ERROR_SHARE = "error_share"
CLIENT_ERROR_SHARE = f"client_{ERROR_SHARE}"


def with_error_share(summaries: Sequence[PhaseSummary]) -> list[PhaseSummary]:
    """Return the summaries with the share that clients saw or, without client results, that coordinators counted."""
    return [replace(summary, values={**summary.values, ERROR_SHARE: _share(summary)}) for summary in summaries]


def _share(summary: PhaseSummary) -> Cell:
    if "client_ops_per_s" in summary.values:
        return summary.values.get(CLIENT_ERROR_SHARE)
    requests, errors = summary.values.get(TOTAL), failed(summary.values)
    return errors / requests if isinstance(requests, int | float) and requests and errors is not None else None


def failed(values: Mapping[str, Cell]) -> float | None:
    """Return the number of failed operations in a row of a summary; None if it is unknown.

    With Paxos v1, a conditional write whose read failed is counted as both, but never more than all operations.
    """
    total = 0.0
    for operation in COUNTED:
        counts = [values.get(f"{operation.word}_{error}") for error in ERRORS]
        numbers = [count for count in counts if isinstance(count, int | float)]
        if operation.is_usual and len(numbers) < len(counts):
            return None
        total += sum(numbers)
    operations = values.get(TOTAL)
    return min(total, operations) if isinstance(operations, int | float) else total
