"""The operations of a node, of keyspaces or of tables, and the columns that show them."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property

from collector.model import histogram
from collector.model.histogram import Buckets
from collector.model.metric import Series
from collector.model.snapshot import Derived, Rate, Sample
from collector.node.jolokia.table_budget import OTHERS
from collector.node.metrics.decaying_percentiles import DECAYED
from collector.node.metrics.requests import ERRORS, OPERATIONS, REQUESTS, Operation
from collector.node.metrics.separate_writes import NEEDS, SEPARATE_WRITE
from exporters.rows.columns import MS, Column, JointFormula, SumOfRates, number, per_s, ratio, sum_of_known, times

TOTAL_RATE = "operations_per_s"
"""The column with the rate of all operations."""
DECAYED_MEAN = "cassandra_table_operation_decayed_mean_seconds"


@dataclass(frozen=True)
class Operations:
    """The reads and writes that a row shows.

    keyspace  name or pattern of the keyspaces whose local operations are shown; "" for coordinated operations.
    table     name or pattern of the tables to which the local operations are restricted.
    local     whether the node reports only local operations; without a keyspace, all of them are then shown.
    """

    keyspace: str = ""
    table: str = ""
    local: bool = False
    count: str = field(init=False)
    total: str = field(init=False)
    duration: str = field(init=False)
    decayed: str = field(init=False)

    def __post_init__(self) -> None:
        kind = "table" if self.table else "keyspace"
        names = tuple(f"cassandra_{kind}_{suffix}" for suffix in _LOCAL) if self.keyspace else _COORDINATED
        if self.local and not self.keyspace:
            names = (*_SUMS, *_COORDINATED[2:])
        for attribute, name in zip(("count", "total", "duration", "decayed"), names, strict=True):
            object.__setattr__(self, attribute, name)

    @cached_property
    def is_pattern(self) -> bool:
        return any(letter in "*?[" for letter in self.keyspace + self.table)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics that the columns read."""
        return (self.count, self.total, self.duration, self.decayed, *((DECAYED_MEAN,) if self.table else ()))

    def series(self, metric: str, operation: str) -> Series:
        """Return the series of `metric` for an `Operation.scope` such as Read; its labels may contain patterns."""
        if not self.keyspace:
            return (metric, operation)
        local = _LOCAL_NAMES.get(operation, operation)
        return (metric, *(label for label in (self.keyspace, self.table) if label), local)

    def per_s(self, sample: Sample, operation: str) -> float | None:
        """Return operations per second: the sum of the rates, each over the time that its own counter covers."""
        if not self.is_pattern:
            return per_s(sample, self.series(self.count, operation))
        rates = self._rates(sample, self.count, operation).values()
        return sum(rate.per_s for rate in rates) if rates else None

    def increase(self, sample: Sample, operation: str) -> float | None:
        """Return the number of operations in the interval."""
        rates = self._rates(sample, self.count, operation).values()
        return sum(rate.increase for rate in rates) if rates else None

    def total_of(self, sample: Sample, amount: Callable[[Sample, str], float | None]) -> float | None:
        """Return the sum of an amount, such as `per_s`, over the known operations, none counted twice."""
        return sum_of_known(amount(sample, operation) for operation in ADDED)

    def mean_s(self, sample: Sample, operation: str) -> float | None:
        """Return the interval's mean latency, or a table's decaying mean if only that is known; None if neither is.

        The interval's mean is unknown if there were no operations, or if count and total cover different times.
        """
        if not self.table and not self.is_pattern:
            return ratio(sample, self.series(self.total, operation), self.series(self.count, operation))
        totals = self._rates(sample, self.total, operation)
        if not totals:
            return number(sample, self.series(DECAYED_MEAN, operation)) if self.table else None
        counts = self._rates(sample, self.count, operation)
        known = [
            (counts[labels].increase, total.increase)
            for labels, total in totals.items()
            if labels in counts and counts[labels].elapsed_s == total.elapsed_s
        ]
        count = sum(increase for increase, _ in known)
        return sum(increase for _, increase in known) / count if count else None

    def buckets(self, sample: Sample, operation: str) -> Buckets | None:
        """Return the merged latency histogram of the interval."""
        if not self.is_pattern:
            value = sample.values.get(self.series(self.duration, operation))
            return value if isinstance(value, Buckets) else None
        values = self._values(sample, self.duration, operation).values()
        parts = [value for value in values if isinstance(value, Buckets)]
        return histogram.merge(parts) if len(parts) > 1 else parts[0] if parts else None

    def decayed_s(self, sample: Sample, operation: str, q: float) -> float | None:
        """Return a decaying percentile; None for a pattern, or if the node has had no operations since it started."""
        return number(sample, (*self.series(self.decayed, operation), f"{q:g}")) or None

    def is_decayed(self, sample: Sample) -> bool:
        """Return whether the row shows decaying percentiles because interval percentiles are unavailable."""
        return not any(self.buckets(sample, operation) for operation in ("Read", "Write")) and any(
            series[0] in DECAYED for series in sample.values
        )

    def _rates(self, sample: Sample, metric: str, operation: str) -> dict[Series, Rate]:
        values = self._values(sample, metric, operation)
        return {labels: value for labels, value in values.items() if isinstance(value, Rate)}

    def _values(self, sample: Sample, metric: str, operation: str) -> dict[Series, Derived]:
        """Return the metric's values for the selected keyspaces and tables, keyed by labels."""
        return {series[1:]: sample.values[series] for series in self.selected(sample.values, metric, operation)}

    def selected(self, known: Collection[Series], metric: str, operation: str) -> list[Series]:
        """Return those of the known series of `metric` that are in the selected keyspaces and tables, in order."""
        wanted = self.series(metric, operation)
        if not self.is_pattern:
            return [wanted] if wanted in known else []
        return [
            series
            for series in known
            if series[0] == metric
            and OTHERS not in series
            and len(series) == len(wanted)
            and all(fnmatchcase(label, pattern) for label, pattern in zip(series, wanted, strict=True))
        ]


ADDED = (*(operation.scope for operation in OPERATIONS if operation.adds), SEPARATE_WRITE)
"""The operations that add up to the total."""
_LOCAL_NAMES = {operation.scope: operation.local for operation in OPERATIONS if operation.local}
_COORDINATED = (
    REQUESTS,
    "cassandra_client_request_seconds_total",
    "cassandra_client_request_duration_seconds",
    "cassandra_client_request_decayed_seconds",
)
_LOCAL = ("operations_total", "operation_seconds_total", "operation_duration_seconds", "operation_decayed_seconds")
_SUMS = ("cassandra_local_operations_total", "cassandra_local_operation_seconds_total")


@dataclass(frozen=True)
class OperationRate:
    """Operations per second (see `Operations.per_s`)."""

    operations: Operations
    operation: str

    def __call__(self, sample: Sample) -> float | None:
        return self.operations.per_s(sample, self.operation)


@dataclass(frozen=True)
class MeanLatency:
    """The mean latency in milliseconds (see `Operations.mean_s`)."""

    operations: Operations
    operation: str

    def __call__(self, sample: Sample) -> float | None:
        return times(MS, self.operations.mean_s(sample, self.operation))


@dataclass(frozen=True)
class LatencyQuantile:
    """A quantile of the interval's latencies in milliseconds, or the decaying one if their buckets are unknown."""

    operations: Operations
    operation: str
    q: float

    def __call__(self, sample: Sample) -> float | None:
        return _quantiles_ms(sample, self.operations, self.operation, (self.q,))[0]


def latency_quantiles(formulas: Sequence[LatencyQuantile]) -> JointFormula:
    """Return the joint formula of quantiles of the same operations."""
    operations, operation, shares = formulas[0].operations, formulas[0].operation, [formula.q for formula in formulas]
    return lambda sample: _quantiles_ms(sample, operations, operation, shares)


def _quantiles_ms(
    sample: Sample, operations: Operations, operation: str, shares: Sequence[float]
) -> Sequence[float | None]:
    buckets = operations.buckets(sample, operation)
    if not buckets:
        return [times(MS, operations.decayed_s(sample, operation, share)) for share in shares]
    if not buckets.total:
        return [None] * len(shares)
    return [MS * quantile_s for quantile_s in histogram.quantiles(buckets, shares)]


@dataclass(frozen=True)
class HighestLatency:
    """The upper bound of the interval's latencies in milliseconds."""

    operations: Operations
    operation: str

    def __call__(self, sample: Sample) -> float | None:
        # Cassandra's own maximum covers more than the interval, so it is not used.
        buckets = self.operations.buckets(sample, self.operation)
        return times(MS, histogram.highest(buckets)) if buckets else None


@dataclass(frozen=True)
class TotalRate:
    """All operations per second (see `Operations.total_of`)."""

    operations: Operations

    def __call__(self, sample: Sample) -> float | None:
        return self.operations.total_of(sample, self.operations.per_s)


def operation_columns(operations: Operations, operation: Operation) -> list[Column]:
    """Return the columns for an operation: its rate, and its mean, percentile and maximum latencies."""
    word, scope, title = operation.word, operation.scope, operation.title
    text = word.replace("_", " ") if operation.is_usual else title.removesuffix("s")
    rates, tails = frozenset((*operations.metrics[:2], *operations.metrics[4:])), frozenset(operations.metrics)
    # Columns of other operations are the first to be hidden.
    keeps = {"Lat": 9, "50th": 2, "95th": 6, "99th": 8, "Max": 3} if operation.is_usual else {}

    def latency(
        name: str, header: str, of: Callable[[Sample], float | None], needs: frozenset[str], about: str
    ) -> Column:
        keep, about = keeps.get(header, 1), f"{about} {text} latency, ms"
        return Column(f"{word}_{name}_ms", f"{operation.short}{header}", of, needs, 3, keep, help=about)

    rate, about = OperationRate(operations, scope), f"{title[0].upper()}{title[1:]} per second"
    header, keep = (f"{operation.short}s/s", 9) if operation.is_usual else (f"{operation.short}/s", 1)
    return [
        Column(f"{word}s_per_s", header, rate, rates, 1, keep, help=about),
        latency("mean", "Lat", MeanLatency(operations, scope), rates, "Mean"),
        *(
            latency(f"p{q}", f"{q}th", LatencyQuantile(operations, scope, q / 100), tails, f"{q}th percentile of")
            for q in (50, 95, 99)
        ),
        latency("max", "Max", HighestLatency(operations, scope), tails, "Highest"),
    ]


def more_operation_columns(operations: Operations) -> list[Column]:
    """Return the rate of all operations, the columns of those that are not usual, and the errors of each operation."""
    needs = frozenset((operations.count, *(NEEDS if operations.count == REQUESTS else ())))
    about = "All operations per second, none counted twice"
    others = [operation for operation in OPERATIONS if not operation.is_usual]
    return [
        Column(TOTAL_RATE, "Ops/s", TotalRate(operations), needs, 1, 1, help=about),
        *(column for operation in others for column in operation_columns(operations, operation)),
        *(_errors(operations, operation) for operation in OPERATIONS),
    ]


def _errors(operations: Operations, operation: Operation) -> Column:
    # Errors are counted by coordinators, not for keyspaces.
    series = () if operations.keyspace else tuple((metric, operation.scope) for metric in ERRORS.values())
    name, needs = f"{operation.word}_errors_per_s", frozenset(name for name, *_ in series)
    about = f"Failed {operation.title} per second: timeouts, unavailables and failures"
    return Column(name, f"{operation.short}Err", SumOfRates(series), needs, 1, 1, help=about)
