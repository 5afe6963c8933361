"""Compares two groups of runs: every column, in every phase and in total."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from collector.runs.phases import TOTAL
from exporters.comparison.client_amounts import ALL, ClientBins, ClientColumn, client_columns
from exporters.comparison.inference import LEVEL, Difference, RunAmounts, difference
from exporters.comparison.quantities import Ratio
from exporters.comparison.server_amounts import Bound, RowRatio, ServerInterval, bounds, row_ratios
from exporters.line.columns import Cell


@dataclass(frozen=True)
class PhaseData:
    """A phase of a run.

    server  the cluster's intervals.
    client  the clients' bins by the prefix of their columns.
    stated  the client columns of the phase's summary, including percentiles that a load generator reported without
            histogram counts.
    """

    server: Sequence[ServerInterval] = ()
    client: Mapping[str, ClientBins] = field(default_factory=dict)
    stated: Mapping[str, Cell] = field(default_factory=dict)


@dataclass(frozen=True)
class ComparedRun:
    """A run and its measured phases by name."""

    name: str
    phases: Mapping[str, PhaseData]


@dataclass(frozen=True)
class Comparison:
    """The comparison of a column in a phase.

    bound       the latency above which a request is slow, if the column is a share of slow requests; otherwise "".
    adjusted_p  the p-value after Holm's correction for all comparisons; None if there is no test.
    """

    phase: str
    column: str
    difference: Difference
    bound: str = ""
    adjusted_p: float | None = None

    @property
    def is_significant(self) -> bool:
        return self.adjusted_p is not None and self.adjusted_p < LEVEL


def comparisons(a: Sequence[ComparedRun], b: Sequence[ComparedRun], wanted: Iterable[str] = ()) -> list[Comparison]:
    """Compare the phases that all runs have and, if there are several, their total, and apply Holm's correction.

    The columns of single operations are compared if there are several operations, or if `wanted` names them.
    """
    phases = common_phases([*a, *b])
    groups = [(phase, [phase]) for phase in phases]
    if len(phases) > 1:
        groups.append((TOTAL, phases))
    results = [
        Comparison(name, *columns)
        for name, parts in groups
        for columns in (*_client(a, b, parts, frozenset(wanted)), *_server(a, b, parts))
    ]
    return corrected(
        [
            comparison
            for comparison in results
            if comparison.difference.value_a is not None or comparison.difference.value_b is not None
        ]
    )


def common_phases(runs: Sequence[ComparedRun]) -> list[str]:
    """Return the phases that all runs have, in the order of the first run."""
    return [name for name in runs[0].phases if all(name in run.phases for run in runs)]


def corrected(results: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons with Holm's correction (Scandinavian Journal of Statistics 6, 1979)."""
    tested = sorted(
        (comparison.difference.p, number)
        for number, comparison in enumerate(results)
        if comparison.difference.p is not None
    )
    adjusted: dict[int, float] = {}
    highest = 0.0
    for rank, (p, number) in enumerate(tested):
        highest = max(highest, min(1.0, p * (len(tested) - rank)))
        adjusted[number] = highest
    return [replace(comparison, adjusted_p=adjusted.get(number)) for number, comparison in enumerate(results)]


Compared = tuple[str, Difference, str]


def _client(
    a: Sequence[ComparedRun], b: Sequence[ComparedRun], phases: Sequence[str], wanted: frozenset[str]
) -> Iterator[Compared]:
    """Yield the comparison of each column of the client results, over all these phases together."""
    present = [set(run.phases[phase].client) for run in (*a, *b) for phase in phases]
    prefixes = sorted(set.intersection(*present))
    for prefix in prefixes:
        bins = [run.phases[phase].client[prefix] for run in (*a, *b) for phase in phases]
        for column in client_columns(prefix, bins):
            if prefix == ALL or len(prefixes) > 2 or column.name in wanted:
                yield column.name, _client_difference(column, a, b, phases, prefix), ""


def _client_difference(
    column: ClientColumn, a: Sequence[ComparedRun], b: Sequence[ComparedRun], phases: Sequence[str], prefix: str
) -> Difference:
    bins = [[[run.phases[phase].client[prefix] for phase in phases] for run in side] for side in (a, b)]
    if column.needs_counts and not all(phase.has_counts for side in bins for run in side for phase in run):
        return Difference(_stated(a, phases, column.name), _stated(b, phases, column.name), reason="no distribution")
    first, second = ([[column.amounts(phase) for phase in run] for run in side] for side in bins)
    return difference(column.quantity, first, second)


def _stated(side: Sequence[ComparedRun], phases: Sequence[str], column: str) -> float | None:
    """Return the summary's value of a column; None if there are several runs or phases."""
    cell = side[0].phases[phases[0]].stated.get(column) if len(side) == len(phases) == 1 else None
    return float(cell) if isinstance(cell, int | float) else None


def _server(a: Sequence[ComparedRun], b: Sequence[ComparedRun], phases: Sequence[str]) -> Iterator[Compared]:
    """Yield the comparison of each column of the cluster, over all these phases together."""

    def amounts(side: Sequence[ComparedRun], column: RowRatio | Bound) -> list[RunAmounts]:
        return [[column.amounts(run.phases[phase].server) for phase in phases] for run in side]

    for column in row_ratios():
        yield column.column, difference(Ratio(), amounts(a, column), amounts(b, column)), ""
    pooled = [interval for run in (*a, *b) for phase in phases for interval in run.phases[phase].server]
    for bound in bounds(pooled):
        yield bound.column, difference(Ratio(), amounts(a, bound), amounts(b, bound)), bound.text
