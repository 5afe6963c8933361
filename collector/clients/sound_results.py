"""Refuses results whose values are impossible, whichever format they were read from."""

from itertools import pairwise

from collector.clients.client_format import ClientFormatError
from collector.clients.client_result import ClientInterval, ClientResult, Operation
from collector.clients.parsing.field_values import MAX_TIME_S
from collector.clients.parsing.labels import MAX_LABELS

# Because times are rounded, intervals may overlap or leave gaps of up to this fraction of an interval.
TOLERANCE = 0.1


def require_sound(result: ClientResult) -> None:
    """Raise ClientFormatError if a time or a count is impossible, or if there are too many operations."""
    # The operation without a name does not count.
    if len(result.operations) > MAX_LABELS + 1:
        raise ClientFormatError(f"{len(result.operations)} operations (at most {MAX_LABELS} are supported)")
    for operation in result.operations:
        for interval in filter(None, (*operation.intervals, operation.total)):
            _require_values(interval)
        _require_order(operation)


def _require_values(interval: ClientInterval) -> None:
    if not 0 <= interval.begin_s <= interval.end_s < MAX_TIME_S:
        raise ClientFormatError(f"invalid time range: {interval.begin_s:.3f} s to {interval.end_s:.3f} s")
    if min(interval.completed, *interval.errors.values(), 0) < 0:
        raise ClientFormatError(f"negative number of operations at {interval.begin_s:.3f} s")


def _require_order(operation: Operation) -> None:
    for interval, following in pairwise(operation.intervals):
        require_no_overlap(operation.name, interval, following)


def require_no_overlap(name: str, interval: ClientInterval, following: ClientInterval) -> None:
    """Raise ClientFormatError if an interval of the operation `name` begins before the previous one has ended."""
    if following.begin_s - interval.end_s < -tolerance_s(interval, following):
        of_name = f" of {name}" if name else ""
        raise ClientFormatError(f"intervals{of_name} overlap at {following.begin_s:.3f} s")


def tolerance_s(interval: ClientInterval, following: ClientInterval) -> float:
    """Return the overlap or gap that is allowed between two intervals, in seconds."""
    return TOLERANCE * min(interval.end_s - interval.begin_s, following.end_s - following.begin_s)
