"""The comparison of two groups of runs: every column, in every phase and in total; and conditions on differences."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from collector.node.metrics.requests import OPERATIONS
from collector.printable import one_line
from collector.runs.run import TOTAL
from exporters.results.comparison.amounts import (
    ALL,
    KINDS,
    Bound,
    ClientBins,
    ClientColumn,
    RowRatio,
    ServerInterval,
    bounds,
    client_columns,
    row_ratios,
)
from exporters.results.comparison.inference import LEVEL, Difference, Ratio, RunAmounts, difference
from exporters.results.summary.conditions import RelativeCondition
from exporters.results.summary.phase_summary import occurring
from exporters.rows.columns import Cell, cell_number
from exporters.rows.operation_columns import TOTAL_RATE

# The columns of throughput: of the clients, or of the cluster if there are no client results.
THROUGHPUT = (
    frozenset({"client_ops_per_s"}),
    frozenset({TOTAL_RATE, *(f"{operation.plural}_per_s" for operation in OPERATIONS)}),
)
Compared = tuple[str, Difference, str]


@dataclass(frozen=True)
class PhaseData:
    """A phase of a run.

    server  the cluster's intervals.
    note    which intervals and nodes `server` does not have, of those that the recordings have; "" if it has all.
    client  the clients' bins by the kind of latency and the prefix of their columns; see `latency_kinds`.
    stated  the client columns of the phase's summary, including percentiles that a load generator reported without
            histogram counts.
    """

    server: Sequence[ServerInterval] = ()
    client: Mapping[str, Mapping[str, ClientBins]] = field(default_factory=dict)
    stated: Mapping[str, Cell] = field(default_factory=dict)
    note: str = ""

    def bins(self, kind: str) -> Mapping[str, ClientBins]:
        """Return the bins for the given kind of latency, keyed by column prefix; {} if there are none."""
        return self.client.get(kind, {})


@dataclass(frozen=True)
class ComparedRun:
    """A run and its measured phases by name."""

    name: str
    phases: Mapping[str, PhaseData]


@dataclass(frozen=True)
class Comparison:
    """The comparison of a column in a phase.

    bound       the latency above which a request is slow, if the column is a share of slow requests; otherwise "".
    adjusted_p  the p-value after the correction for the number of comparisons; None if there is no test.
    """

    phase: str
    column: str
    difference: Difference
    bound: str = ""
    adjusted_p: float | None = None

    @property
    def is_significant(self) -> bool:
        return self.adjusted_p is not None and self.adjusted_p < LEVEL

    @property
    def is_decided_by_correction(self) -> bool:
        """Whether the difference would be significant if it were the only comparison."""
        p = self.difference.p
        return p is not None and p < LEVEL and not self.is_significant


def comparisons(a: Sequence[ComparedRun], b: Sequence[ComparedRun], wanted: Iterable[str] = ()) -> list[Comparison]:
    """Compare the phases that all runs have and, if there are several, their total, and apply Holm's correction.

    The columns of single operations are compared if there are several operations, or if `wanted` names them.
    """
    runs = [*a, *b]
    phases = [name for name in runs[0].phases if all(name in run.phases for run in runs)]
    measured = [run.phases[phase] for run in runs for phase in phases]
    # The preferred kind of latency among those that the client results of all phases have.
    kind = next((kind for kind in KINDS if all(kind in part.client for part in measured)), "")
    groups = [(phase, [phase]) for phase in phases]
    if len(phases) > 1:
        groups.append((TOTAL, phases))
    results = [
        Comparison(name, *columns)
        for name, parts in groups
        for columns in (*_client(a, b, parts, kind, frozenset(wanted)), *_server(a, b, parts))
    ]
    known = [part for part in results if (part.difference.value_a, part.difference.value_b) != (None, None)]
    return corrected(known)


def corrected(results: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons with Holm's weighted correction (Scandinavian Journal of Statistics 6, 1979).

    The probability that any of them is a false alarm is at most LEVEL. The throughput has half of the weight, because
    it is what most comparisons are about, and would otherwise rarely be found among a dozen resources.
    """
    weights = _weights([comparison.column for comparison in results if comparison.difference.p is not None])
    tested = sorted(
        (comparison.difference.p / weights[comparison.column], number)
        for number, comparison in enumerate(results)
        if comparison.difference.p is not None
    )
    adjusted: dict[int, float] = {}
    highest, remaining = 0.0, sum(weights[results[number].column] for _, number in tested)
    for ratio, number in tested:
        highest = max(highest, min(1.0, ratio * remaining))
        adjusted[number] = highest
        remaining -= weights[results[number].column]
    return [replace(comparison, adjusted_p=adjusted.get(number)) for number, comparison in enumerate(results)]


def _weights(columns: Sequence[str]) -> dict[str, float]:
    """Return the weight of each column, given the columns of all tests."""
    throughput = next((kind for kind in THROUGHPUT if not kind.isdisjoint(columns)), frozenset())
    count = sum(column in throughput for column in columns)
    others = len(columns) - count
    if not count or not others:
        return dict.fromkeys(columns, 1.0)
    return {column: 1 / count if column in throughput else 1 / others for column in columns}


def _client(
    a: Sequence[ComparedRun], b: Sequence[ComparedRun], phases: Sequence[str], kind: str, wanted: frozenset[str]
) -> Iterator[Compared]:
    """Yield the comparison of each column of the client results, over all these phases together."""
    present = [set(run.phases[phase].bins(kind)) for run in (*a, *b) for phase in phases]
    prefixes = sorted(set.intersection(*present))
    for prefix in prefixes:
        sides = [[[run.phases[phase].bins(kind)[prefix] for phase in phases] for run in side] for side in (a, b)]
        for column in client_columns(prefix, [bins for side in sides for run in side for bins in run]):
            if prefix == ALL or len(prefixes) > 2 or column.name in wanted:
                yield column.name, _client_difference(column, a, b, phases, sides), ""


def _client_difference(
    column: ClientColumn,
    a: Sequence[ComparedRun],
    b: Sequence[ComparedRun],
    phases: Sequence[str],
    sides: Sequence[Sequence[Sequence[ClientBins]]],
) -> Difference:
    """Return the difference of a column; `sides` contains the bins of each side, run and phase."""
    if column.needs_counts and any(bins.counts is None for side in sides for run in side for bins in run):
        return Difference(_stated(a, phases, column.name), _stated(b, phases, column.name), reason="no distribution")
    first, second = ([[column.amounts(bins) for bins in run] for run in side] for side in sides)
    return difference(column.quantity, first, second)


def _stated(side: Sequence[ComparedRun], phases: Sequence[str], column: str) -> float | None:
    """Return the summary's value of a column; None if there are several runs or phases."""
    cell = side[0].phases[phases[0]].stated.get(column) if len(side) == len(phases) == 1 else None
    return cell_number(cell)


def _server(a: Sequence[ComparedRun], b: Sequence[ComparedRun], phases: Sequence[str]) -> Iterator[Compared]:
    """Yield the comparison of each column of the cluster, over all these phases together."""

    def amounts(side: Sequence[ComparedRun], column: RowRatio | Bound) -> list[RunAmounts]:
        return [[column.amounts(run.phases[phase].server) for phase in phases] for run in side]

    pooled = [interval for run in (*a, *b) for phase in phases for interval in run.phases[phase].server]
    for column in row_ratios(occurring(interval.row for interval in pooled)):
        yield column.column, difference(Ratio(), amounts(a, column), amounts(b, column)), ""
    for bound in bounds(pooled):
        yield bound.column, difference(Ratio(), amounts(a, bound), amounts(b, bound)), bound.text


@dataclass(frozen=True)
class CheckedCondition:
    """A condition, and the reasons why it is met or cannot be checked; none if it is not met."""

    condition: RelativeCondition
    failures: tuple[str, ...]


def checked(condition: RelativeCondition, comparisons: Sequence[Comparison]) -> CheckedCondition:
    """Check a condition in every phase and in total."""
    column = condition.column
    compared = [comparison for comparison in comparisons if comparison.column == column]
    if not compared:
        hint = ""
        if not column.startswith(ALL) and column.endswith(("_p50_ms", "_p95_ms", "_p99_ms")):
            hint = f" (hint: use {column.removesuffix('_ms').replace('_p', '_above_p')}_share)"
        return CheckedCondition(condition, (f"{column} is not compared{hint}",))
    failures = []
    for comparison in compared:
        low, high = comparison.difference.low, comparison.difference.high
        phase_text = f"in phase '{one_line(comparison.phase)}'"
        if low is None or high is None:
            if comparison.difference.reason not in ("both zero", "no variation") or _exceeds(condition, comparison):
                failures.append(
                    f"{column} has no confidence interval {phase_text}: {comparison.difference.reason or 'A is zero'}"
                )
        elif condition.holds(low, high):
            failures.append(f"the difference of {column} is {100 * low:+.1f}% to {100 * high:+.1f}% {phase_text}")
    return CheckedCondition(condition, tuple(failures))


def _exceeds(condition: RelativeCondition, comparison: Comparison) -> bool:
    """Return whether a difference between values without variation meets the condition, or is unknown."""
    if comparison.difference.reason == "both zero":
        # The relative difference of two zeros is undefined, but they are equal.
        return condition.holds(0.0, 0.0)
    return comparison.difference.relative is None or condition.holds(
        comparison.difference.relative, comparison.difference.relative
    )


@dataclass(frozen=True)
class Report:
    """The comparison of two groups of runs, given by their names."""

    a: Sequence[str]
    b: Sequence[str]
    warnings: Sequence[str]
    comparisons: Sequence[Comparison]
    conditions: Sequence[CheckedCondition]

    @property
    def is_within_runs(self) -> bool:
        """Whether the confidence intervals cover only the variation within runs, because each side has one run."""
        return len(self.a) == len(self.b) == 1

    @property
    def is_failed(self) -> bool:
        return any(checked.failures for checked in self.conditions)
