"""Conditions on the columns of a summary, such as `read_p99_ms > 10`."""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from exporters.line.columns import Cell

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


def condition_of(text: str) -> Condition:
    """Parse a condition such as `read_p99_ms > 10`. Raises ValueError."""
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise ValueError("expected COLUMN OPERATOR NUMBER, such as 'read_p99_ms > 10'")
    return Condition(" ".join(text.split()), match["column"], match["operator"], float(match["limit"]))
