"""The delta codec: small increases in bucket counts are encoded as letters, and all others as numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.recording.codec import increases_of, increases_text
from tests.every import every

INCREASES = st.lists(st.integers(0, 30) | st.integers(-(1 << 63), 1 << 63), max_size=20)


@given(INCREASES)
def test_decoding_reverses_encoding(increases: list[int]) -> None:
    first, text = increases_text(increases)
    decoded = [0] * first + increases_of(text)
    assert decoded + [0] * (len(increases) - len(decoded)) == increases
    assert text[:1] != "a"
    assert text[-1:] != "a"


def test_small_increases_are_encoded_as_letters_and_others_as_numbers() -> None:
    assert increases_text([0, 0, 1, 0, 25, 26, 3, -4, 0]) == (2, "baz26,d-4,")
    assert increases_text([0, 0]) == (0, "")


@every("text", ["A", "1", "a1", "1;", "b c", "--1,", "é"])
def test_malformed_text_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="is not a bucket increase"):
        increases_of(text)
