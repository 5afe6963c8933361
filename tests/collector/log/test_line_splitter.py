"""Bytes become lines, however they come."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from collector.log.line_splitter import LineSplitter

LONGEST = 8
PIECES = st.sampled_from([b"a", b"b" * 7, b"c" * 9, b"\n", b"\r", b"\r\n", b"\xff", b"\x00"])
BYTES = st.lists(PIECES, max_size=30).map(b"".join)


def chopped(data: bytes, places: list[int]) -> list[bytes]:
    """Return the pieces of `data` between these places."""
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[reset:end] for reset, end in itertools.pairwise(edges)]


def lines_of(pieces: list[bytes], longest: int = LONGEST) -> list[bytes]:
    lines = LineSplitter(longest)
    return [line for piece in pieces for line in lines.complete(piece)]


@given(BYTES, st.lists(st.integers(0, 1000), max_size=8))
def test_any_chopping_gives_the_same_lines(data: bytes, places: list[int]) -> None:
    # A last line without an end is cut off, or not there yet, whatever came before.
    assert lines_of([*chopped(data, places), b"\n"]) == lines_of([data + b"\n"])


@given(BYTES)
def test_lines_are_those_that_end_cut_off_at_the_bound(data: bytes) -> None:
    assert lines_of([data + b"\n"]) == [line[:LONGEST].removesuffix(b"\r") for line in (data + b"\n").split(b"\n")[:-1]]


def test_half_a_line_waits_for_its_rest() -> None:
    lines = LineSplitter()
    assert list(lines.complete(b"one\ntw")) == [b"one"]
    assert list(lines.complete(b"o")) == []
    assert list(lines.complete(b"\r\n")) == [b"two"]


def test_a_line_without_an_end_takes_no_room() -> None:
    lines = LineSplitter(LONGEST)
    assert [line for _ in range(1000) for line in lines.complete(b"x" * 100)] == [b"x" * LONGEST]
    assert lines._partial == b""
    assert list(lines.complete(b"xx\nnext\n")) == [b"next"]


def test_what_begins_in_a_line_begins_with_the_next() -> None:
    lines = LineSplitter()
    lines.reset(skip_line=True)
    assert list(lines.complete(b"rest\nwhole\n")) == [b"whole"]
