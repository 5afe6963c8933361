"""Decoding many encoded increases at once gives what `increases_of` gives for each, and the same errors."""

from hypothesis import given
from hypothesis import strategies as st

from collector.merge.columnar.decode import decode_increases
from collector.recording.codec import CodingError, increases_of, increases_text

INCREASES = st.lists(st.integers(0, 30) | st.integers(-(10**18) + 1, 10**18 - 1), max_size=20)
TEXT = st.text("az019,-,A é", max_size=6)


def one_by_one(texts: list[str]) -> list[list[int]] | None:
    """Return the increases in each text; None if one is malformed."""
    try:
        return [increases_of(text) for text in texts]
    except ValueError:
        return None


def at_once(texts: list[str]) -> list[list[int]] | None:
    """Return the increases in each text, decoded together; None if one is malformed."""
    try:
        sizes, increases = decode_increases(texts)
    except CodingError:
        return None
    remaining = iter(increases.tolist())
    return [[next(remaining) for _ in range(size)] for size in sizes.tolist()]


@given(st.lists(INCREASES, max_size=8))
def test_increases_are_those_of_each_text(lists: list[list[int]]) -> None:
    texts = [increases_text(increases)[1] for increases in lists]
    assert at_once(texts) == one_by_one(texts)


@given(st.lists(TEXT, max_size=4))
def test_malformed_texts_are_errors(texts: list[str]) -> None:
    assert at_once(texts) == one_by_one(texts)


def test_a_number_beyond_64_bits_is_an_error() -> None:
    assert at_once(["a", f"{2**63},"]) is None
    assert at_once(["a", f"{-(2**63) - 1},"]) is None
