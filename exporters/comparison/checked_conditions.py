"""The conditions of `compare --fail-if`, checked in every phase."""

from collections.abc import Sequence
from dataclasses import dataclass

from collector.printable import one_line
from exporters.comparison.client_amounts import ALL
from exporters.comparison.comparison import Comparison
from exporters.summary.conditions import RelativeCondition


@dataclass(frozen=True)
class CheckedCondition:
    """A condition, and the reasons why it is met or cannot be checked; none if it is not met."""

    condition: RelativeCondition
    failures: tuple[str, ...]


def checked(condition: RelativeCondition, made: Sequence[Comparison]) -> CheckedCondition:
    """Check a condition in every phase and in total."""
    column = condition.column
    compared = [one for one in made if one.column == column]
    if not compared:
        hint = ""
        if not column.startswith(ALL) and column.endswith(("_p50_ms", "_p95_ms", "_p99_ms")):
            hint = f" (hint: use {column.removesuffix('_ms').replace('_p', '_above_p')}_share)"
        return CheckedCondition(condition, (f"{column} is not compared{hint}",))
    failures = []
    for one in compared:
        low, high = one.difference.low, one.difference.high
        where = f"in phase '{one_line(one.phase)}'"
        if low is None or high is None:
            if one.difference.reason not in ("both zero", "no variation") or _exceeds(condition, one):
                failures.append(f"{column} has no interval {where}: {one.difference.reason or 'A is zero'}")
        elif condition.holds(low, high):
            failures.append(f"the difference of {column} is {100 * low:+.1f}% to {100 * high:+.1f}% {where}")
    return CheckedCondition(condition, tuple(failures))


def _exceeds(condition: RelativeCondition, one: Comparison) -> bool:
    """Return whether a difference without variation meets the condition, or is unknown; 0 equals 0."""
    if one.difference.reason == "both zero":
        return condition.holds(0.0, 0.0)
    return one.difference.relative is None or condition.holds(one.difference.relative, one.difference.relative)
