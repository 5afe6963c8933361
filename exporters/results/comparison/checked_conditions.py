"""The conditions of `compare --fail-if`, checked in every phase."""

from collections.abc import Sequence
from dataclasses import dataclass

from collector.printable import one_line
from exporters.results.comparison.client_amounts import ALL
from exporters.results.comparison.comparison import Comparison
from exporters.results.summary.conditions import RelativeCondition


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
