"""The result of a comparison of runs: what was compared, warnings, the comparisons and the conditions."""

from collections.abc import Sequence
from dataclasses import dataclass

from exporters.results.comparison.checked_conditions import CheckedCondition
from exporters.results.comparison.comparison import Comparison


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
