"""The result of a load generator without secrets, such as tokens in the URLs that name its operations."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from collector.clients.client_result import ClientInterval, ClientResult, Operation
from collector.redaction.redactor import Redactor


def redacted_result(result: ClientResult, redactor: Redactor) -> ClientResult:
    """Return the result with the secrets in its texts replaced; the names of its operations remain unique."""
    names: dict[str, None] = {}
    operations = []
    for operation in result.operations:
        name = _free(redactor.text(operation.name), names)
        names[name] = None
        operations.append(_operation(operation, name, redactor))
    return replace(
        result,
        tool=redactor.text(result.tool),
        source=redactor.text(result.source),
        operations=tuple(operations),
        notes=tuple(map(redactor.text, result.notes)),
    )


def redacted_errors(interval: ClientInterval, redactor: Redactor) -> ClientInterval:
    """Return the interval with the secrets in its kinds of errors replaced."""
    return replace(interval, errors=_errors(interval.errors, redactor)) if interval.errors else interval


def _operation(operation: Operation, name: str, redactor: Redactor) -> Operation:
    total = None if operation.total is None else redacted_errors(operation.total, redactor)
    intervals = tuple(redacted_errors(interval, redactor) for interval in operation.intervals)
    return Operation(name, intervals, total)


def _errors(errors: Mapping[str, int], redactor: Redactor) -> Mapping[str, int]:
    total: Counter[str] = Counter()
    for kind, number in errors.items():
        total[redactor.text(kind)] += number
    return dict(total)


def _free(name: str, used: Mapping[str, None]) -> str:
    """Return the name, with a number if two operations differ only in a secret."""
    numbered = (f"{name} ({number})" for number in range(2, len(used) + 3))
    return next(text for text in (name, *numbered) if text not in used)
