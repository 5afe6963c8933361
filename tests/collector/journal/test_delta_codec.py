"""Gains of a histogram as letters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.journal.delta_codec import decode, encode

GAINS = st.lists(st.integers(0, 30) | st.integers(-(1 << 63), 1 << 63), max_size=20)


@given(GAINS)
def test_what_is_spelled_is_read(gains: list[int]) -> None:
    first, text = encode(gains)
    found = [0] * first + decode(text)
    assert found + [0] * (len(gains) - len(found)) == gains
    assert text[:1] != "a"
    assert text[-1:] != "a"


def test_small_gains_are_letters_and_others_numbers() -> None:
    assert encode([0, 0, 1, 0, 25, 26, 3, -4, 0]) == (2, "baz26,d-4,")
    assert encode([0, 0]) == (0, "")


@pytest.mark.parametrize("text", ["A", "1", "a1", "1;", "b c", "--1,", "é"])
def test_what_is_no_gain_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an increase of a bucket"):
        decode(text)
