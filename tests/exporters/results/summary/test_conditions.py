"""Conditions compare a column with a number; any other text is an error."""

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.results.summary.conditions import OPERATORS, condition_of
from tests.every import every


@given(st.sampled_from(sorted(OPERATORS)), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.sampled_from(["", " "]))
def test_a_condition_compares_with_its_operator(symbol: str, limit: float, value: float, space: str) -> None:
    condition = condition_of(f"read_p99_ms{space}{symbol}{space}{limit!r}")
    assert condition.holds({"read_p99_ms": value}) == OPERATORS[symbol](value, limit)


def test_the_operators_are_those_of_python() -> None:
    assert OPERATORS["<="] is operator.le
    assert condition_of("reads_per_s>=1e3").holds({"reads_per_s": 1000}) is True


@pytest.mark.parametrize("value", [None, "text"])
def test_a_column_without_a_number_is_unknown(value: str | None) -> None:
    assert condition_of("read_p99_ms > 1").holds({"read_p99_ms": value}) is None
    assert condition_of("read_p99_ms > 1").holds({}) is None


@every("text", ["", "read_p99_ms", "read_p99_ms > ", "> 3", "a > b", "a = 3", "a > nan", "a > 3 4"])
def test_any_other_text_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="expected COLUMN OPERATOR NUMBER"):
        condition_of(text)
