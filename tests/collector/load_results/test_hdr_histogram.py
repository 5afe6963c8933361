"""Histograms are decoded as HdrHistogram's own library decodes them; anything else causes a clear error."""

import struct
import zlib
from base64 import b64decode, b64encode

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from collector.load_results.client_result import rounded_up
from collector.load_results.hdr_histogram import HdrError, decoded
from tests.every import every

HOUR_NS = 3_600_000_000_000
HEADER = struct.Struct(">iiiiqqd")


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
        if digits > 3:
            highest = rounded_up(highest)
        expected[highest] = expected.get(highest, 0) + 1
    assert decoded(str(histogram.encode().decode())) == expected


@given(st.lists(st.integers(1, HOUR_NS), min_size=1, max_size=50))
def test_values_are_rounded_as_in_a_histogram_with_three_digits(values: list[int]) -> None:
    counts = decoded(encoded(values))
    assert counts.keys() == {rounded_up(value) for value in values}
    assert all(value <= rounded_up(value) < value * 1.001 for value in values)


@given(st.dictionaries(st.integers(0, 3000), st.integers(1, 2**15 - 1), max_size=20), st.sampled_from("hiq"))
def test_versions_0_and_1_have_the_same_counts_as_version_2(numbers: dict[int, int], word: str) -> None:
    length = max(numbers, default=0) + 1
    counts = struct.pack(f">{length}{word}", *(numbers.get(index, 0) for index in range(length)))
    size = struct.calcsize(word) << 4
    sparse = b"".join(encoded_number(number) for index in range(length) for number in (numbers.get(index) or -1,))
    v2 = compressed(HEADER.pack(0x1C849303, len(sparse), 0, 3, 1, HOUR_NS, 1.0) + sparse)
    v1 = compressed(HEADER.pack(0x1C849301 | size, len(counts), 0, 3, 1, HOUR_NS, 1.0) + counts, 0x1C849302 | size)
    v0 = compressed(struct.pack(">iiqqq", 0x1C849308 | size, 3, 1, HOUR_NS, 0) + counts, 0x1C849309 | size)
    assert decoded(v0) == decoded(v1) == decoded(v2)
    assert sum(decoded(v0).values()) == sum(numbers.values())


def encoded_number(number: int) -> bytes:
    """Return a ZigZag LEB128 integer."""
    value, text = number << 1 if number >= 0 else ~(number << 1), b""
    while value >= 0x80:
        text, value = text + bytes([value & 0x7F | 0x80]), value >> 7
    return text + bytes([value])


V1_OF_4_BYTES = 0x1C849301 | 4 << 4


def compressed(content: bytes, cookie: int = 0x1C849314) -> str:
    data = zlib.compress(content)
    return b64encode(struct.pack(">ii", cookie, len(data)) + data).decode()


@every(
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
        (compressed(bytes(9 << 20)), "larger than 8 MiB"),
        (
            compressed(HEADER.pack(0x1C849303, 5 << 20, 0, 5, 1, 1 << 62, 1.0) + b"\x02" * (5 << 20)),
            "larger than 262,144",
        ),
        (
            compressed(HEADER.pack(0x1C849303, 5 << 20, 0, 5, 1, 1 << 62, 1.0) + b"\x01" * (5 << 20)),
            "larger than 262,144",
        ),
        (compressed(HEADER.pack(V1_OF_4_BYTES, 4, 0, 3, 1, HOUR_NS, 1.0) + b"\xff" * 4), "negative count"),
        (compressed(HEADER.pack(V1_OF_4_BYTES, 3, 0, 3, 1, HOUR_NS, 1.0) + b"\xff" * 4), "malformed header"),
        (compressed(HEADER.pack(0x1C849301 | 6 << 4, 0, 0, 3, 1, HOUR_NS, 1.0)), "malformed header"),
        (b64encode(struct.pack(">ii", 0x0C72124F, 0)).decode(), "floating-point"),
        (b64encode(struct.pack(">ii", 0x1C849314, -1)).decode(), "truncated"),
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
