"""The share of failed operations in a phase, in one column for runs with and without client results."""

from collections.abc import Sequence
from dataclasses import replace

from exporters.files.merged_rows import OPERATIONS
from exporters.line.formulas import Cell
from exporters.summary.phase_summary import ERRORS, PhaseSummary

ERROR_SHARE = "error_share"
CLIENT_ERROR_SHARE = f"client_{ERROR_SHARE}"


def with_error_share(summaries: Sequence[PhaseSummary]) -> list[PhaseSummary]:
    """Return the summaries with the share that clients saw or, without client results, that coordinators counted."""
    return [replace(summary, values={**summary.values, ERROR_SHARE: _share(summary)}) for summary in summaries]


def _share(summary: PhaseSummary) -> Cell:
    if "client_ops_per_s" in summary.values:
        return summary.values.get(CLIENT_ERROR_SHARE)
    requests, errors = 0.0, 0.0
    for operation, plural in OPERATIONS:
        counts = [summary.values.get(name) for name in (plural, *(f"{operation.lower()}_{error}" for error in ERRORS))]
        numbers = [count for count in counts if isinstance(count, int | float)]
        if len(numbers) < len(counts):
            return None
        requests += numbers[0]
        errors += sum(numbers[1:])
    return errors / requests if requests else None
