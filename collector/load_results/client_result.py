"""The result of a load generator, in one form for all of them: operations, their intervals and latencies.

Latencies are counts by value, or the percentiles that a load generator states.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import accumulate, groupby
from math import ceil
from typing import Any

from collector.printable import count_text, unique_text
from collector.redaction.redactor import Redactor

NS_PER_S = 1_000_000_000
SIGNIFICANT_BITS = 11
"""Values keep this many leading bits, as in an HdrHistogram with three significant digits: an error below 0.1%."""
# The quotient of a percentage and 100 is not always exact, so a rank may be slightly above a whole number.
_ROUNDING = 1e-9
MAX_COUNTS = 2_000_000
"""The limit on different latencies of all intervals of a result: reading it again takes about 220 bytes for each."""
MAX_WIDTH_S = 86_400.0
_NONE: Mapping[Any, Any] = {}


@dataclass(frozen=True)
class Latency:
    """The latencies of some operations.

    counts    the number of operations by latency in nanoseconds; a key is the highest value that the load generator
              does not distinguish from the true one.
    stated_s  percentiles that the load generator states, in seconds by percentage; empty if there are counts.
    """

    counts: Mapping[int, int] = field(default_factory=dict)
    stated_s: Mapping[float, float] = field(default_factory=dict)

    def percentile_s(self, percentage: float) -> float | None:
        """Return a percentile in seconds; None if it is unknown, because percentiles are never interpolated."""
        return self.percentiles_s((percentage,))[0]

    def percentiles_s(self, percentages: Iterable[float]) -> list[float | None]:
        """Return several percentiles, as `percentile_s` does."""
        if not self.counts:
            return [self.stated_s.get(percentage) for percentage in percentages]
        values = sorted(self.counts)
        cumulative = list(accumulate(self.counts[value] for value in values))
        # As in HdrHistogram, the rank of a percentile is at least 1.
        ranks = [max(ceil(percentage / 100 * cumulative[-1] - _ROUNDING), 1) for percentage in percentages]
        return [values[bisect_left(cumulative, rank)] / NS_PER_S for rank in ranks]

    @property
    def longest_s(self) -> float:
        """The longest latency that is known, in seconds; 0 if none is."""
        return max(self.counts) / NS_PER_S if self.counts else max(self.stated_s.values(), default=0.0)

    @property
    def mean_s(self) -> float | None:
        """The mean in seconds; None if there are no counts."""
        total = sum(self.counts.values())
        return sum(value * count for value, count in self.counts.items()) / total / NS_PER_S if total else None


def rounded_up(value_ns: int) -> int:
    """Return the highest value with the same SIGNIFICANT_BITS leading bits."""
    shift = max(value_ns.bit_length() - SIGNIFICANT_BITS, 0)
    return value_ns | ((1 << shift) - 1)


@dataclass(frozen=True)
class ClientInterval:
    """What a client saw in a period of time, in seconds since the epoch on the run's clock.

    completed  the number of operations that succeeded in the period.
    errors     the number of operations that failed, by kind of error; "" if the kind is unknown.
    response   the latencies of the operations that succeeded, measured from their scheduled beginning; None if they are
               unknown, or if no operation succeeded.
    service    the latencies of the same operations, measured from their actual beginning; None as for `response`.
    """

    begin_s: float
    end_s: float
    completed: int
    errors: Mapping[str, int] = field(default_factory=dict)
    response: Latency | None = None
    service: Latency | None = None

    @classmethod
    def stated(
        cls,
        end_s: float,
        completed: int,
        failed: int | Mapping[str, int] = 0,
        service_s: Mapping[float, float] = _NONE,
        response_s: Mapping[float, float] = _NONE,
        begin_s: float = 0.0,
    ) -> "ClientInterval":
        """Return an interval with percentiles in seconds by percentage, which are ignored if no operation succeeded.

        `failed` is the number of operations that failed, by kind of error if that is known. Of printed rows, whose
        begin is not stated, `intervals_of` sets it.
        """
        errors = {"": failed} if isinstance(failed, int) else failed
        kinds = (Latency(stated_s=known) if completed and known else None for known in (response_s, service_s))
        return cls(begin_s, end_s, completed, {kind: count for kind, count in errors.items() if count}, *kinds)

    def as_response(self) -> "ClientInterval":
        """Return the interval with its service times as response times."""
        return replace(self, response=self.service, service=None)

    @property
    def failed(self) -> int:
        return sum(self.errors.values())

    @property
    def attempted(self) -> int:
        return self.completed + self.failed


@dataclass(frozen=True)
class Operation:
    """One kind of operation, such as reads.

    name       its name in the load generator's result, or "" if the result does not distinguish operations.
    intervals  periods in ascending order that do not overlap; none if the load generator only states a total.
    total      the total that the load generator states; None if it states none.
    """

    name: str
    intervals: tuple[ClientInterval, ...] = ()
    total: ClientInterval | None = None

    @property
    def parts(self) -> list[ClientInterval]:
        return [*self.intervals, *filter(None, [self.total])]

    @property
    def summary(self) -> ClientInterval | None:
        """The total of the intervals or, if there are none, the stated total."""
        return total_of(self.intervals) or self.total

    def changed(self, change: Callable[[ClientInterval], ClientInterval]) -> "Operation":
        """Return the operation with `change` made to its intervals and its total."""
        total = None if self.total is None else change(self.total)
        return replace(self, intervals=tuple(map(change, self.intervals)), total=total)


@dataclass(frozen=True)
class StatedTotals:
    """What a load generator itself states about a whole result, to be compared with what was read; None if unstated.

    operation       the operation's name; None for all operations together.
    completed       operations that succeeded.
    failed          operations that failed.
    attempted       operations that succeeded or failed.
    attempted_per_s  their number per second.
    length_s        the result's duration.
    """

    operation: str | None = None
    completed: int | None = None
    failed: int | None = None
    attempted: int | None = None
    attempted_per_s: float | None = None
    length_s: float | None = None


@dataclass(frozen=True)
class ClientResult:
    """The result of a load generator on one client host.

    format           the name of the result's format.
    tool             the load generator and, if known, its version.
    source           the file that the result was read from.
    operations       the operations; their names are unique.
    estimated_clock  whether the result has no time of day, so that its position in the run is an estimate.
    notes            what a reader of the result should know, each as one line.
    checksum         a hash of the file's content, by which two copies of a file are recognised.
    stated           the totals that the file states besides `operations`; an import compares and then forgets them.
    """

    format: str
    tool: str
    source: str
    operations: tuple[Operation, ...]
    estimated_clock: bool = False
    notes: tuple[str, ...] = ()
    checksum: str = ""
    stated: tuple[StatedTotals, ...] = ()

    @property
    def has_only_service_time(self) -> bool:
        """Whether the latencies omit the time that operations waited before they began (coordinated omission)."""
        parts = self.parts
        return not any(part.response for part in parts) and any(part.service for part in parts)

    @property
    def span_s(self) -> tuple[float, float] | None:
        """The time range of all intervals and totals; None if there are none."""
        parts = self.parts
        return (min(part.begin_s for part in parts), max(part.end_s for part in parts)) if parts else None

    @property
    def parts(self) -> list[ClientInterval]:
        return [part for operation in self.operations for part in operation.parts]

    def shifted(self, offset_s: float) -> "ClientResult":
        def shift(interval: ClientInterval) -> ClientInterval:
            return replace(interval, begin_s=interval.begin_s + offset_s, end_s=interval.end_s + offset_s)

        return replace(self, operations=tuple(operation.changed(shift) for operation in self.operations))


def failed_note(number: int, noun: str = "operation", hint: str = "") -> list[str]:
    """Return a note if the latencies include those of operations that failed; `noun` is a word for an operation."""
    return [f"the latencies include those of {count_text(number, f'failed {noun}')}{hint}"] if number else []


def applicable(notes: Mapping[str, object]) -> list[str]:
    """Return the notes whose values are true."""
    return [note for note, applies in notes.items() if applies]


def total_of(intervals: Sequence[ClientInterval]) -> ClientInterval | None:
    """Return the total of several intervals; None if there are none.

    If several intervals have completed operations, but one of them no counts, latencies are unknown, because
    percentiles cannot be added.
    """
    if not intervals:
        return None
    errors: Counter[str] = Counter()
    for interval in intervals:
        errors.update(interval.errors)
    active = [interval for interval in intervals if interval.completed]
    return ClientInterval(
        intervals[0].begin_s,
        intervals[-1].end_s,
        sum(interval.completed for interval in intervals),
        dict(errors),
        merged_latency([interval.response for interval in active]),
        merged_latency([interval.service for interval in active]),
    )


def with_unique_names(operations: Iterable[Operation]) -> tuple[Operation, ...]:
    """Return the operations; if names are equal, because long ones were cut or secrets replaced, they are numbered."""
    unique: dict[str, Operation] = {}
    for operation in operations:
        name = unique_text(operation.name, unique)
        unique[name] = replace(operation, name=name)
    return tuple(unique.values())


def with_joined_intervals(result: ClientResult) -> ClientResult:
    """Return a result of at most MAX_COUNTS different latencies, with longer intervals if necessary."""
    width_s = 1.0
    joined = result
    while _count_of(joined) > MAX_COUNTS and width_s < MAX_WIDTH_S:
        width_s *= 2
        joined = replace(joined, operations=tuple(_joined(operation, width_s) for operation in joined.operations))
    return result if joined is result else replace(joined, notes=(*result.notes, joined_note(width_s)))


def joined_note(width_s: float) -> str:
    return f"intervals are joined to {width_s:g} s, because the file has more than {MAX_COUNTS:,} different latencies"


def _count_of(result: ClientResult) -> int:
    return sum(
        1 + sum(len(latency.counts) for latency in (interval.response, interval.service) if latency)
        for operation in result.operations
        for interval in operation.intervals
    )


def _joined(operation: Operation, width_s: float) -> Operation:
    groups = groupby(operation.intervals, key=lambda interval: interval.begin_s // width_s)
    return replace(operation, intervals=tuple(filter(None, (total_of(list(group)) for _, group in groups))))


def merged_latency(latencies: Sequence[Latency | None]) -> Latency | None:
    """Return the latencies of all operations; None if there are none, or if one of several has no counts."""
    if len(latencies) == 1:
        return latencies[0]
    counts: Counter[int] = Counter()
    for latency in latencies:
        if latency is None or not latency.counts:
            return None
        counts.update(latency.counts)
    return Latency(dict(counts)) if counts else None


def redacted_result(result: ClientResult, redactor: Redactor) -> ClientResult:
    """Return the result with the secrets in its texts replaced; the names of its operations remain unique."""
    # The same few kinds of errors occur in many intervals.
    text = cache(redactor.text)
    operations = with_unique_names(
        replace(operation.changed(partial(redacted_errors, text=text)), name=text(operation.name))
        for operation in result.operations
    )
    tool, source, *notes = map(text, (result.tool, result.source, *result.notes))
    return replace(result, tool=tool, source=source, operations=operations, notes=tuple(notes))


def redacted_errors(interval: ClientInterval, text: Callable[[str], str]) -> ClientInterval:
    """Return the interval with its kinds of errors as `text` redacts them."""
    if all(text(kind) == kind for kind in interval.errors):
        return interval
    total: Counter[str] = Counter()
    for kind, number in interval.errors.items():
        total[text(kind)] += number
    return replace(interval, errors=dict(total))
