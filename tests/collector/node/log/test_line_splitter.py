"""The line splitter gives the same lines no matter how the bytes are divided into pieces."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from collector.file_access import LineSplitter

MAX_BYTES = 8
PIECES = st.sampled_from([b"a", b"b" * 7, b"c" * 9, b"\n", b"\r", b"\r\n", b"\xff", b"\x00"])
BYTES = st.lists(PIECES, max_size=30).map(b"".join)


def pieces_of(data: bytes, cuts: list[int]) -> list[bytes]:
    """Return `data` divided into pieces at these offsets."""
    offsets = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[begin:end] for begin, end in itertools.pairwise(offsets)]


def lines_of(pieces: list[bytes], longest: int = MAX_BYTES) -> list[bytes]:
    lines = LineSplitter(longest)
    return [line for piece in pieces for line in lines.complete(piece)]


@given(BYTES, st.lists(st.integers(0, 1000), max_size=8))
def test_any_division_into_pieces_gives_the_same_lines(data: bytes, cuts: list[int]) -> None:
    # The final newline completes a partial line.
    assert lines_of([*pieces_of(data, cuts), b"\n"]) == lines_of([data + b"\n"])


@given(BYTES)
def test_long_lines_are_truncated_at_the_limit(data: bytes) -> None:
    assert lines_of([data + b"\n"]) == [
        line[:MAX_BYTES].removesuffix(b"\r") for line in (data + b"\n").split(b"\n")[:-1]
    ]


def test_a_partial_line_waits_for_its_end() -> None:
    lines = LineSplitter()
    assert list(lines.complete(b"one\ntw")) == [b"one"]
    assert list(lines.complete(b"o")) == []
    assert list(lines.complete(b"\r\n")) == [b"two"]


def test_an_endless_line_uses_bounded_memory() -> None:
    lines = LineSplitter(MAX_BYTES)
    assert [line for _ in range(1000) for line in lines.complete(b"x" * 100)] == [b"x" * MAX_BYTES]
    assert lines._partial == b""
    assert list(lines.complete(b"xx\nnext\n")) == [b"next"]


def test_after_a_reset_the_rest_of_a_line_is_skipped() -> None:
    lines = LineSplitter()
    lines.reset(skip_line=True)
    assert list(lines.complete(b"rest\nwhole\n")) == [b"whole"]
