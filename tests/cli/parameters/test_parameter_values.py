"""Values and ranges of a swept parameter are exact; malformed ones are refused in one line."""

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.parameters.parameter_values import MAX_VALUES, ParameterError, parameter_of
from collector.runs.parameter_sweep import SweptParameter


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1,5,10", "1 5 10"),
        ("a=100..400:100", "100 200 300 400"),
        ("a=1..4", "1 2 3 4"),
        ("a=3..1", "3 2 1"),
        ("a=10..1:-4", "10 6 2"),
        ("a=1..10:4", "1 5 9"),
        ("a=0.1..0.5:0.1", "0.1 0.2 0.3 0.4 0.5"),
        ("a=1..2:0.5", "1 1.5 2"),
        ("a=-1..1:0.5", "-1 -0.5 0 0.5 1"),
        ("a=7..7", "7"),
        ("a=1,2,4..8:2,ONE", "1 2 4 6 8 ONE"),
        ("a=QUORUM,LOCAL_ONE", "QUORUM LOCAL_ONE"),
        ("a=1.50,2.0", "1.50 2.0"),
        ("a=../x,b=c,-", "../x b=c -"),
    ],
)
def test_values(text: str, values: str) -> None:
    assert parameter_of(text) == SweptParameter("a", tuple(values.split()))


@given(
    st.decimals(-(10**6), 10**6, places=4), st.integers(0, 200), st.decimals("0.0001", 10**4, places=4), st.booleans()
)
def test_ranges_are_exact_and_include_their_last_value(first: Decimal, steps: int, step: Decimal, down: bool) -> None:
    step = -step if down else step
    last = first + steps * step
    values = parameter_of(f"a={first:f}..{last:f}:{step:f}").values
    assert [Decimal(value) for value in values] == [first + number * step for number in range(steps + 1)]


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused_in_one_line(text: str) -> None:
    for candidate in (text, f"a={text}"):
        message = ""
        values: tuple[str, ...] = ("1",)
        try:
            values = parameter_of(candidate).values
        except ParameterError as error:
            message = str(error)
        assert message.isprintable()
        assert len(set(values)) == len(values) > 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'': expected NAME=1,5,10 or NAME=100..1000:100"),
        ("a", "'a': expected"),
        ("a=", "'a=': expected"),
        ("=1", "'=1': '' is not a name"),
        ("1a=1", "'1a' is not a name"),
        ("a b=1", "'a b' is not a name"),
        ("a=1,,2", "a value is empty"),
        ("a=1,", "a value is empty"),
        ("a=1,2,1", "the value 1 occurs twice"),
        ("a=1..3,2", "the value 2 occurs twice"),
        ("a=1..", "'1..' is not a range"),
        ("a=1..x", "'1..x' is not a range"),
        ("a=1..3:", "'1..3:' is not a range"),
        ("a=1..3:1:1", "is not a range"),
        ("a=1...3", "'1...3' is not a range"),
        ("a=1..3:0", "the step is zero"),
        ("a=1..3:-1", "the step -1 leads away from 3"),
        ("a=3..1:1", "the step 1 leads away from 1"),
        ("a=0..1000000000:0.001", f"more than {MAX_VALUES:,} values (hint: use a larger step)"),
        ("a=1\n2", "printable characters"),
        ("a=" + "x" * 201, "at most 200"),
        ("a=1..99999999999999999999", "is not a range"),
    ],
)
def test_a_malformed_parameter_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(message)) as caught:
        parameter_of(text)
    assert str(caught.value).isprintable()
