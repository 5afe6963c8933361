"""Assigns individual operations, each with its end and duration, to intervals of one second."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from collector.clients.client_format import ClientFormatError
from collector.clients.client_latency import Latency
from collector.clients.client_result import ClientInterval, Operation, total_of
from collector.printable import count_text

INTERVAL_S = 1.0
SECONDS_PER_DAY = 86400
# The limit for all operations together; without it, wrong times could use any amount of memory.
MAX_INTERVALS = 14 * SECONDS_PER_DAY


class OperationTimes:
    """Counts operations by name and second; each operation belongs to the second in which it ended."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, defaultdict[int, Counter[int]]] = defaultdict(lambda: defaultdict(Counter))
        self._errors: defaultdict[str, defaultdict[int, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))

    def add(self, name: str, second: int, duration_ns: int, count: int = 1) -> None:
        """Add operations that ended within `second`, in whole seconds since the epoch."""
        self._counts[name][second][duration_ns] += count

    def add_counts(self, name: str, second: int, counts_by_ns: Mapping[int, int]) -> None:
        """Add operations that ended within `second`, counted by their duration."""
        self._counts[name][second].update(counts_by_ns)

    def add_error(self, name: str, second: int, kind: str, count: int = 1) -> None:
        """Add operations that failed within `second`."""
        self._errors[name][second][kind] += count

    def operations(self) -> tuple[Operation, ...]:
        """Return the operations by name; seconds in which none ended are intervals without completed operations.

        All operations have the same intervals, from the first second of any of them to the last one. Raises
        ClientFormatError if there are too many intervals.
        """
        names = sorted(self._counts.keys() | self._errors.keys())
        seconds = [*_seconds(self._counts.values()), *_seconds(self._errors.values())]
        if not seconds:
            return ()
        grid = checked_seconds(min(seconds), max(seconds), len(names))
        return tuple(Operation(name, tuple(self._interval(name, second) for second in grid)) for name in names)

    def take(self) -> tuple[Operation, ...]:
        """Return the total of each operation since the last call, and forget it."""
        names = sorted(self._counts.keys() | self._errors.keys())
        operations = tuple(
            Operation(name, total=total_of([self._interval(name, second) for second in self._seconds_of(name)]))
            for name in names
        )
        self._counts.clear()
        self._errors.clear()
        return operations

    def _seconds_of(self, name: str) -> list[int]:
        return sorted({*self._counts[name], *self._errors[name]})

    def _interval(self, name: str, second: int) -> ClientInterval:
        counts: Mapping[int, int] = self._counts[name].get(second, {})
        errors: Mapping[str, int] = self._errors[name].get(second, {})
        # The counts are not copied, because they take most of the memory.
        latency = Latency(counts) if counts else None
        return ClientInterval(float(second), second + INTERVAL_S, sum(counts.values()), dict(errors), service=latency)


def checked_seconds(first: int, last: int, names: int = 1) -> range:
    """Return the seconds from the first to the last one.

    Raises ClientFormatError if there are too many seconds for `names` operations.
    """
    seconds = range(first, last + 1)
    if len(seconds) * names > MAX_INTERVALS:
        text = f"{count_text(names, 'operation name')} over {len(seconds) / SECONDS_PER_DAY:.0f} days"
        raise ClientFormatError(f"too many intervals: {text} (hint: check the times in the file)")
    return seconds


def _seconds(by_name: Iterable[Mapping[int, object]]) -> Iterator[int]:
    return (second for of_name in by_name for second in of_name)
