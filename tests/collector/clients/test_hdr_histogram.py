"""Histograms are decoded as HdrHistogram's own library decodes them; anything else causes a clear error."""

import struct
import zlib
from base64 import b64decode, b64encode

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from collector.clients.client_latency import rounded_up
from collector.clients.parsing.hdr_histogram import HdrError, decoded

HOUR_NS = 3_600_000_000_000


def encoded(values: list[int], digits: int = 3, lowest: int = 1) -> str:
    """Return a histogram of the values as HdrHistogram's library encodes it."""
    histogram = HdrHistogram(lowest, HOUR_NS, digits)
    for value in values:
        histogram.record_value(value)
    return str(histogram.encode().decode())


@given(st.lists(st.integers(1000, HOUR_NS), max_size=50), st.integers(1, 5), st.sampled_from([1, 1000, 1024]))
def test_the_counts_are_those_of_hdrhistograms_library(values: list[int], digits: int, lowest: int) -> None:
    histogram = HdrHistogram(lowest, HOUR_NS, digits)
    for value in values:
        histogram.record_value(value)
    expected: dict[int, int] = {}
    for value in values:
        highest = histogram.get_highest_equivalent_value(value)
        expected[highest] = expected.get(highest, 0) + 1
    assert decoded(str(histogram.encode().decode())) == expected


@given(st.lists(st.integers(1, HOUR_NS), min_size=1, max_size=50))
def test_values_are_rounded_as_in_a_histogram_with_three_digits(values: list[int]) -> None:
    counts = decoded(encoded(values))
    assert counts.keys() == {rounded_up(value) for value in values}
    assert all(value <= rounded_up(value) < value * 1.001 for value in values)


def test_the_first_version_is_named_in_the_error() -> None:
    text = b64encode(struct.pack(">ii", 0x1C849302, 0)).decode()
    with pytest.raises(HdrError, match="V1 is not supported"):
        decoded(text)


def compressed(content: bytes) -> str:
    data = zlib.compress(content)
    return b64encode(struct.pack(">ii", 0x1C849314, len(data)) + data).decode()


HEADER = struct.Struct(">iiiiqqd")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "base64"),
        ("HIST", "base64"),
        ("HISTFAAAA", "base64"),
        (b64encode(b"x" * 40).decode(), "not a compressed"),
        (encoded([5])[:24], "truncated"),
        (b64encode(b64decode(encoded([5]))[:8] + bytes(200)).decode(), "damaged"),
        (compressed(bytes(10)), "truncated"),
        (compressed(HEADER.pack(0x1C849303, 0, 0, 9, 1, 10, 1.0)), "malformed header"),
        (compressed(HEADER.pack(0x1C849303, 0, 0, 3, 10, 1, 1.0)), "malformed header"),
        (compressed(HEADER.pack(0x1C849303, 5, 0, 3, 1, 10, 1.0)), "truncated"),
        (compressed(HEADER.pack(0x1C849303, 1, 0, 3, 1, 10, 1.0) + b"\x80"), "truncated"),
        (compressed(HEADER.pack(0x1C849303, 10, 0, 3, 1, HOUR_NS, 1.0) + b"\xff" * 9 + b"\x02"), "malformed counts"),
        (compressed(bytes(65 << 20)), "larger than 64 MiB"),
    ],
)
def test_anything_else_is_an_error(text: str, reason: str) -> None:
    with pytest.raises(HdrError, match=reason):
        decoded(text)


@given(st.data())
def test_a_damaged_histogram_is_an_error_or_has_counts(data: st.DataObject) -> None:
    raw = bytearray(b64decode(encoded([1, 10_000, 10_000_000])))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        counts = decoded(b64encode(bytes(raw)).decode())
    except HdrError:
        return
    assert all(count > 0 for count in counts.values())
