"""Conditions on the columns of a summary, such as `read_p99_ms > 10`, and on differences, such as `> +5%`.

The names of the columns that a summary can have are known before there is one.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from collector.merge.grid import ClusterSample
from collector.model.snapshot import NEVER, Sample
from collector.printable import one_line
from exporters.results.summary.client_values import PERCENTILES
from exporters.results.summary.phase_summary import (
    COVERAGE_COLUMNS,
    ERROR_SHARE,
    PhaseSummary,
    is_lower_bound,
    phase_values,
)
from exporters.rows.columns import Cell
from exporters.rows.operation_columns import Operations

OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
_CONDITION = re.compile(
    r"\s*(?P<column>[a-z][a-z0-9_]*)\s*(?P<operator>[<>]=?|[!=]=)\s*(?P<limit>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*"
)
_RELATIVE = re.compile(
    r"\s*(?P<column>[a-z][a-z0-9_]*)\s*(?P<operator>[<>]=?)\s*(?P<limit>[-+](?:\d{1,9}\.?\d{0,9}|\.\d{1,9}))\s*%\s*"
)
_CLIENT = ("ops_per_s", "errors_per_s", ERROR_SHARE, "count", "mean_ms", *(f"{name}_ms" for name in PERCENTILES))
_CLIENT_COLUMN = re.compile(rf"client_(?:[a-z0-9_]+_)?(?:{'|'.join(_CLIENT)})")


@dataclass(frozen=True)
class Condition:
    """A comparison of a column with a number; `text` is what the user wrote."""

    text: str
    column: str
    operator: str
    limit: float

    def holds(self, values: Mapping[str, Cell]) -> bool | None:
        """Return whether the condition holds; None if the column has no number."""
        value = values.get(self.column)
        if not isinstance(value, int | float):
            return None
        return OPERATORS[self.operator](value, self.limit)

    def failures(self, summaries: Sequence[PhaseSummary]) -> Iterator[str]:
        """Yield why the condition is met in a phase, or why it cannot be checked; nothing if it is not met."""
        if not any(isinstance(summary.values.get(self.column), int | float) for summary in summaries):
            yield f"the run has no value for {self.column}"
        for summary in summaries:
            if self.holds(summary.values):
                least = "at least " if self._is_server_rate and is_lower_bound(summary.values) else ""
                yield f"{self.column} is {least}{summary.values[self.column]} in phase '{one_line(summary.name)}'"

    @property
    def _is_server_rate(self) -> bool:
        return self.column.endswith("s_per_s") and not self.column.startswith("client_")


def condition_of(text: str) -> Condition:
    """Parse a condition such as `read_p99_ms > 10`. Raises ValueError."""
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}': expected COLUMN OPERATOR NUMBER, such as 'read_p99_ms > 10'")
    return Condition(" ".join(text.split()), match["column"], match["operator"], float(match["limit"]))


@dataclass(frozen=True)
class RelativeCondition:
    """A comparison of the difference between two groups, relative to the first group's value, with a limit."""

    text: str
    column: str
    operator: str
    limit: float

    def holds(self, low: float, high: float) -> bool:
        """Return whether the condition holds for all differences in a confidence interval."""
        return OPERATORS[self.operator](low if self.operator.startswith(">") else high, self.limit)


def relative_condition_of(text: str) -> RelativeCondition:
    """Parse a condition such as `client_read_p99_ms > +5%`. Raises ValueError."""
    match = _RELATIVE.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}': expected COLUMN OPERATOR SIGN NUMBER%, such as 'client_p99_ms > +5%'")
    return RelativeCondition(" ".join(text.split()), match["column"], match["operator"], float(match["limit"]) / 100)


def is_summary_column(name: str) -> bool:
    """Return whether a summary can have the column; the operations of client results may have any names."""
    return name in _columns() or bool(_CLIENT_COLUMN.fullmatch(name))


def similar_column(name: str) -> str:
    """Return the column with the most similar name; "" if there is none."""
    return next(iter(get_close_matches(name, [*_columns(), *(f"client_{suffix}" for suffix in _CLIENT)], 1)), "")


def _columns() -> list[str]:
    """Return the columns that do not come from client results."""
    nothing = ClusterSample(Sample("", NEVER, {}, {}), 0)
    return list(dict.fromkeys([*phase_values(Operations(), nothing, 0), *COVERAGE_COLUMNS, ERROR_SHARE]))
