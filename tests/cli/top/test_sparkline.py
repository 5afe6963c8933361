"""Sparklines have the requested width and show absent values as gaps."""

from hypothesis import given
from hypothesis import strategies as st

from cli.top.styled_text import BLOCKS, spark


@given(st.lists(st.floats() | st.just(float("nan"))), st.integers(-1, 30))
def test_a_sparkline_has_the_requested_width(values: list[float], width: int) -> None:
    text = spark(values, width)
    assert len(text) == max(width, 0)
    assert set(text) <= {*BLOCKS, " "}


def test_an_absent_value_is_a_gap() -> None:
    assert spark([0, 1, float("nan"), 4, 8], 6) == " ▁▂ ▅█"
    assert spark([0, 0], 2) == "▁▁"
