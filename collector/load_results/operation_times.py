"""Assigns individual operations, each with its end and duration, to intervals of about one second.

Intervals begin and end with an operation, so that a constant rate gives the same rate in any number of them: in whole
seconds, the first and the last one would be partly empty, and a phase would contain one operation too many or too few.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from collector.load_results.client_format import ClientFormatError, SourceFile
from collector.load_results.client_result import NS_PER_S, ClientInterval, ClientResult, Latency, Operation, total_of
from collector.load_results.load_span import empty_share
from collector.load_results.parsing import Labels
from collector.printable import count_text

INTERVAL_S = 1.0
SECONDS_PER_DAY = 86400
# The limit for all operations together; without it, wrong times could use any amount of memory.
MAX_INTERVALS = 14 * SECONDS_PER_DAY
# An interval ends with its last operation only if that is in the second half of the second, so that none is very short.
MIN_PART_S = 0.5
# A shorter first or last interval is added to the one beside it, because its rate would mean little.
MIN_EDGE_S = 0.25


class OperationTimes:
    """Counts operations by name and second; each operation belongs to the second in which it ended.

    Only the first names and kinds of errors are distinguished (see `Labels`).
    """

    def __init__(self) -> None:
        self._names, self._kinds = Labels(), Labels()
        self._counts: defaultdict[str, defaultdict[int, Counter[int]]] = defaultdict(lambda: defaultdict(Counter))
        self._errors: defaultdict[str, defaultdict[int, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        # The end of the last operation in each second.
        self._ends_s: dict[int, float] = {}
        self._first_end_s = float("inf")
        self._first_duration_s = 0.0
        self._has_fractions = False

    def add(self, name: str, end_s: float, duration_ns: int) -> None:
        """Add an operation that ended at `end_s`, in seconds since the epoch."""
        self.add_time(end_s, duration_ns / NS_PER_S)
        self._counts[self._names.of(name)][int(end_s)][duration_ns] += 1

    def add_error(self, name: str, end_s: float, kind: str) -> None:
        """Add an operation that failed at `end_s`."""
        self.add_time(end_s)
        self.add_error_count(name, int(end_s), kind, 1)

    def add_counts(self, name: str, second: int, counts_by_ns: Mapping[int, int]) -> None:
        """Add operations that ended within `second`, counted by their duration; see `add_time`."""
        self._counts[self._names.of(name, sum(counts_by_ns.values()))][second].update(counts_by_ns)

    def add_error_count(self, name: str, second: int, kind: str, count: int) -> None:
        """Add operations that failed within `second`; see `add_time`."""
        self._errors[self._names.of(name, count)][second][self._kinds.of(kind, count)] += count

    def add_time(self, end_s: float, duration_s: float = 0.0) -> None:
        """Note when an operation ended that is added by `add_counts` or `add_error_count`.

        At least the first operation and the last one of each second must be noted.
        """
        second = int(end_s)
        if end_s >= self._ends_s.get(second, 0.0):
            self._ends_s[second] = end_s
        if end_s < self._first_end_s:
            self._first_end_s, self._first_duration_s = end_s, duration_s
        self._has_fractions = self._has_fractions or end_s != second

    def operations(self) -> tuple[Operation, ...]:
        """Return the operations by name; seconds in which none ended are intervals without completed operations.

        All operations have the same intervals, from the first operation of any of them to the last one. Raises
        ClientFormatError if there are too many intervals.
        """
        names = sorted(self._counts.keys() | self._errors.keys())
        seconds = {second for kinds in (self._counts, self._errors) for of_name in kinds.values() for second in of_name}
        if not seconds:
            return ()
        grid = checked_seconds(min(seconds), max(seconds), len(names))
        bounds_s = self._bounds_s(grid)
        if len(grid) > 1 and bounds_s[-1] - bounds_s[-2] < MIN_EDGE_S:
            self._move(grid[-1], grid[-2])
            grid = grid[:-1]
            del bounds_s[-2]
        if len(grid) > 1 and bounds_s[1] - bounds_s[0] < MIN_EDGE_S:
            self._move(grid[0], grid[1])
            grid = grid[1:]
            del bounds_s[1]
        spans = list(zip(grid, bounds_s, bounds_s[1:], strict=False))
        return tuple(Operation(name, tuple(self._interval(name, *span) for span in spans)) for name in names)

    def result(self, file: SourceFile, tool: str, notes: Iterable[str], empty: str = "no requests") -> ClientResult:
        """Return the operations in a file as a result.

        Raises ClientFormatError with the reason `empty` if there are no operations, and as `operations` does.
        """
        operations = self.operations()
        if not operations:
            raise ClientFormatError(empty)
        return file.result(tool, operations, notes)

    def notes(self, noun: str, hint: str = "") -> list[str]:
        """Return notes on operations whose names or errors are not distinguished; `noun` is a word for an operation."""
        return [*self._names.notes(noun, "name", hint), *self._kinds.notes("error", "kind")]

    def _move(self, second: int, to: int) -> None:
        for counts in self._counts.values():
            counts[to].update(counts.pop(second, Counter()))
        for errors in self._errors.values():
            errors[to].update(errors.pop(second, Counter()))

    def _bounds_s(self, grid: range) -> list[float]:
        """Return where the interval of each second begins, and where the last one ends.

        If all times are whole seconds, the lengths of the first and the last interval are estimated.
        """
        totals = self._totals(grid)
        bounds_s = [0.0, *(self._end_s(second) for second in grid)]
        if self._has_fractions:
            before_s = max(self._first_gap_s(totals, grid), self._first_duration_s)
            bounds_s[0], bounds_s[-1] = max(self._first_end_s - before_s, 0.0), self._ends_s[grid[-1]]
        else:
            bounds_s[0] = grid[0] + INTERVAL_S * empty_share(totals)
            bounds_s[-1] = grid[-1] + INTERVAL_S * (1 - empty_share(totals[::-1]))
        if len(grid) == 1 and bounds_s[1] - bounds_s[0] < MIN_EDGE_S:
            return [float(grid[0]), grid[0] + INTERVAL_S]
        return bounds_s

    def _end_s(self, second: int) -> float:
        """Return the end of a second's interval: that of its last operation, unless a pause follows."""
        end_s = self._ends_s.get(second, 0.0)
        return end_s if end_s >= second + MIN_PART_S else second + INTERVAL_S

    def _first_gap_s(self, totals: Sequence[int], grid: range) -> float:
        """Return the mean time between the first operations, which also passed before the first one ended."""
        number = 0
        for total, second in zip(totals, grid, strict=True):
            number += total
            if number > 1:
                return (self._ends_s[second] - self._first_end_s) / (number - 1)
        return 0.0

    def _totals(self, grid: range) -> list[int]:
        """Return the number of operations of all names in each second."""
        totals = dict.fromkeys(grid, 0)
        for kinds in (self._counts, self._errors):
            for of_name in kinds.values():
                for second, counts in of_name.items():
                    totals[second] += sum(counts.values())
        return list(totals.values())

    def take(self) -> tuple[Operation, ...]:
        """Return the total of each operation since the last call, and forget it."""
        operations = []
        for name in sorted(self._counts.keys() | self._errors.keys()):
            seconds = sorted({*self._counts[name], *self._errors[name]})
            total = total_of([self._interval(name, second, second, second + INTERVAL_S) for second in seconds])
            operations.append(Operation(name, total=total))
        self._counts.clear()
        self._errors.clear()
        self._ends_s.clear()
        return tuple(operations)

    def _interval(self, name: str, second: int, begin_s: float, end_s: float) -> ClientInterval:
        counts: Mapping[int, int] = self._counts[name].get(second, {})
        errors: Mapping[str, int] = self._errors[name].get(second, {})
        # The counts are not copied, because they take most of the memory.
        latency = Latency(counts) if counts else None
        return ClientInterval(begin_s, end_s, sum(counts.values()), dict(errors), service=latency)


def checked_seconds(first: int, last: int, names: int = 1) -> range:
    """Return the seconds from the first to the last one.

    Raises ClientFormatError if there are too many seconds for `names` operations.
    """
    seconds = range(first, last + 1)
    if len(seconds) * names > MAX_INTERVALS:
        text = f"{count_text(names, 'operation name')} over {len(seconds) / SECONDS_PER_DAY:.0f} days"
        raise ClientFormatError(f"too many intervals: {text} (hint: check the times in the file)")
    return seconds


def require_near(begin_s: float, end_s: float) -> None:
    """Raise ClientFormatError if a file's first and last interval are further apart than MAX_INTERVALS seconds."""
    if end_s - begin_s > MAX_INTERVALS:
        days = (end_s - begin_s) / SECONDS_PER_DAY
        raise ClientFormatError(f"the intervals are up to {days:.0f} days apart (hint: check the times in the file)")
