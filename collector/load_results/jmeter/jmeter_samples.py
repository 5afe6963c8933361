"""What JMeter's results have in common, as CSV and as XML.

A sample's `timeStamp` is assumed to be its start, which is JMeter's default. JMeter's threads do not follow a schedule,
so the elapsed time is the service time.

JMeter decides whether a sample succeeded: assertions may reject a response with code 200, or accept one with code 500.

Samples of transaction controllers contain other samples, so they are counted only if a file has no others. Sub-results
(such as redirects and embedded resources) are contained in other samples, so they are not counted.
"""

from collections.abc import Mapping

from collector.load_results.client_format import ClientFormatError
from collector.load_results.client_result import ClientResult, Operation
from collector.load_results.operation_times import OperationTimes, checked_seconds
from collector.printable import count_text

NS_PER_MS = 1_000_000
MS_PER_S = 1000
TRANSACTION = "Number of samples in transaction : "
"""How the message of a transaction controller's sample begins."""
TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
MAX_TIME_MS = 1 << 53
MAX_ELAPSED_MS = 1 << 31
ASSERTION = "assertion failed"


class JmeterSamples:
    """The samples of a file by label and second."""

    def __init__(self) -> None:
        self.sub_results = 0
        # Samples that may be those of transaction controllers, which cannot be recognised.
        self.containers = 0
        self._operations, self._transactions = OperationTimes(), OperationTimes()
        self._transaction_count = 0
        self._is_empty = True
        self._seconds: range | None = None

    def extend(self, first_second: int, last_second: int) -> None:
        """Note that the file has samples in this range. Raises ClientFormatError if the file's range is too long."""
        known = self._seconds or range(first_second, last_second + 1)
        self._seconds = checked_seconds(min(known.start, first_second), max(known.stop - 1, last_second))

    def add(self, label: bytes, second: int, counts_by_ms: Mapping[int, int], *, is_transaction: bool) -> None:
        """Add samples that succeeded and ended within a second."""
        counts = {elapsed_ms * NS_PER_MS: count for elapsed_ms, count in counts_by_ms.items()}
        self._times(is_transaction, counts).add_counts(_text(label), second, counts)

    def add_errors(self, label: bytes, second: int, code: bytes | None, count: int, *, is_transaction: bool) -> None:
        """Add samples that failed and ended within a second; `code` is the response code, None if it is not saved."""
        times = self._times(is_transaction, {0: count})
        times.add_error_count(_text(label), second, _text(_kind(code)), count)

    def add_time(self, end_ms: int, elapsed_ms: int, *, is_transaction: bool) -> None:
        """Note when a sample ended; at least the first sample and the last one of each second must be noted."""
        times = self._transactions if is_transaction else self._operations
        times.add_time(end_ms / MS_PER_S, elapsed_ms / MS_PER_S)

    def _times(self, is_transaction: bool, counts: Mapping[int, int]) -> OperationTimes:
        if is_transaction:
            self._transaction_count += sum(counts.values())
            return self._transactions
        self._is_empty = False
        return self._operations

    def take(self) -> tuple[Operation, ...]:
        """Return the total of each label's samples since the last call, and forget them.

        The samples of transaction controllers are returned until the first other sample has been added.
        """
        self._seconds = None
        transactions = self._transactions.take()
        return transactions if self._is_empty else self._operations.take()

    def result(self, name: str, source: str, notes: list[str]) -> ClientResult:
        """Return the samples as a result of the format `name`. Raises ClientFormatError."""
        times = self._transactions if self._is_empty else self._operations
        operations = times.operations()
        if not operations:
            raise ClientFormatError("the file has no samples")
        return ClientResult(name, "JMeter", source, operations, notes=(*notes, *self._notes(), *times.notes("sample")))

    def _notes(self) -> list[str]:
        notes = []
        if self._transaction_count:
            transactions = count_text(self._transaction_count, "transaction controller sample")
            notes.append(
                f"{transactions} counted as operations, because the file has no other samples"
                if self._is_empty
                else f"{transactions} not counted; the samples inside them are counted instead"
            )
        if self.sub_results:
            sub_results = count_text(self.sub_results, "sub-result")
            notes.append(f"{sub_results} not counted; the samples that contain them are counted instead")
        if self.containers:
            containers = count_text(self.containers, "sample")
            notes.append(
                f"{containers} counted that contain the one before of their thread; if they are those of transaction "
                "controllers, operations count twice (hint: let JMeter save the responseMessage)"
            )
        return notes


def _kind(code: bytes | None) -> bytes:
    """Return the kind of error as in JMeter's report: the response code, unless the response itself succeeded."""
    if code is None:
        return b""
    is_success = not code or (code.isdigit() and 200 <= int(code[:9]) < 400)
    return ASSERTION.encode() if is_success else code


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
