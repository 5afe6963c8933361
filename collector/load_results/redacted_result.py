"""The result of a load generator without secrets, such as tokens in the URLs that name its operations."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from collector.load_results.client_result import ClientInterval, ClientResult, Operation, with_unique_names
from collector.redaction.redactor import Redactor


def redacted_result(result: ClientResult, redactor: Redactor) -> ClientResult:
    """Return the result with the secrets in its texts replaced; the names of its operations remain unique."""
    # The same few kinds of errors occur in many intervals.
    text = cache(redactor.text)
    operations = []
    for operation in result.operations:
        total = None if operation.total is None else redacted_errors(operation.total, text)
        intervals = tuple(redacted_errors(interval, text) for interval in operation.intervals)
        operations.append(Operation(text(operation.name), intervals, total))
    return replace(
        result,
        tool=text(result.tool),
        source=text(result.source),
        operations=with_unique_names(operations),
        notes=tuple(map(text, result.notes)),
    )


def redacted_errors(interval: ClientInterval, text: Callable[[str], str]) -> ClientInterval:
    """Return the interval with its kinds of errors as `text` redacts them."""
    if all(text(kind) == kind for kind in interval.errors):
        return interval
    total: Counter[str] = Counter()
    for kind, number in interval.errors.items():
        total[text(kind)] += number
    return replace(interval, errors=dict(total))
