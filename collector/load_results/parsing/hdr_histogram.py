"""Decodes HdrHistogram's compressed formats V0, V1 and V2.

They are those of HdrHistogram's `encodeIntoCompressedByteBuffer`, in base64: a cookie and a length, then zlib data with
a header and the counts. V2 has the counts as ZigZag LEB128 integers, in which a negative number stands for that many
counts of zero. V1 and V0 have counts of 2, 4 or 8 bytes, stated by the header's cookie; V0 has a shorter header.
"""

import struct
import zlib
from base64 import b64decode
from collections.abc import Iterator

from collector.load_results.client_latency import SIGNIFICANT_BITS, rounded_up

COMPRESSED_V2, COMPRESSED_V1, COMPRESSED_V0 = 0x1C849304, 0x1C849302, 0x1C849309
V2, V1, V0 = 0x1C849303, 0x1C849301, 0x1C849308
OF_FLOATS = (0x0C72124E, 0x0C72124F)
"""The cookies of DoubleHistogram, and of its compressed form."""
# The upper four bits of a cookie's low byte give the word size, which V2 does not use.
_COOKIE_MASK = ~0xF0
_WORDS = {2: "h", 4: "i", 8: "q"}
V1_HEADER, V0_HEADER = ">iiiiqqd", ">iiqqq"
MAX_BYTES = 8 << 20
MAX_NUMBERS = 1 << 18
"""The limit on encoded counts and runs of zeros; a histogram of three digits has at most 56,320 counts."""
MAX_DIGITS = 5
MAX_COUNT = (1 << 63) - 1


class HdrError(ValueError):
    """The text is not a histogram that can be decoded; the message states why."""


def decoded(text: str) -> dict[int, int]:
    """Return the counts of a histogram by value.

    Each value is the highest one that the histogram does not distinguish from the recorded one, in the unit in which
    values were recorded, rounded up to the resolution of `Latency`. Raises HdrError.
    """
    try:
        raw = b64decode(text, validate=True)
        cookie, length = struct.unpack_from(">ii", raw)
    except (ValueError, struct.error):
        raise HdrError("not a base64-encoded HdrHistogram") from None
    if cookie & _COOKIE_MASK in {of_floats & _COOKIE_MASK for of_floats in OF_FLOATS}:
        raise HdrError("a histogram of floating-point values (DoubleHistogram) is not supported")
    if cookie & _COOKIE_MASK not in {known & _COOKIE_MASK for known in (COMPRESSED_V0, COMPRESSED_V1, COMPRESSED_V2)}:
        raise HdrError("not a compressed HdrHistogram")
    if not 0 <= length <= len(raw) - 8:
        raise HdrError("the histogram is truncated")
    return _counts(_decompressed(raw[8 : 8 + length]))


def _decompressed(data: bytes) -> bytes:
    decompressor = zlib.decompressobj()
    try:
        content = decompressor.decompress(data, MAX_BYTES)
    except zlib.error:
        raise HdrError("the histogram is damaged") from None
    if decompressor.unconsumed_tail:
        raise HdrError(f"the histogram is larger than {MAX_BYTES >> 20} MiB")
    if not decompressor.eof:
        raise HdrError("the histogram is truncated")
    return content


def _counts(content: bytes) -> dict[int, int]:
    digits, lowest, highest, numbers = _header(content)
    if not 0 <= digits <= MAX_DIGITS or not 1 <= lowest < highest:
        raise HdrError("the histogram has a malformed header")
    unit_bits = lowest.bit_length() - 1
    # The smallest power of two that distinguishes values of `digits` digits.
    half_bits = max((2 * 10**digits - 1).bit_length(), 1) - 1
    is_finer = half_bits >= SIGNIFICANT_BITS
    counts: dict[int, int] = {}
    for index, number in numbers:
        value = _highest_equivalent(index, unit_bits, half_bits)
        if value.bit_length() > highest.bit_length() + 1 or number > MAX_COUNT:
            raise HdrError("the histogram has malformed counts")
        if is_finer:
            value = rounded_up(value)
        counts[value] = counts.get(value, 0) + number
    return counts


def _header(content: bytes) -> tuple[int, int, int, Iterator[tuple[int, int]]]:
    """Return a histogram's digits, its lowest and highest value, and its counts by index without those of zero."""
    try:
        (cookie,) = struct.unpack_from(">i", content)
        if cookie & _COOKIE_MASK == V0 & _COOKIE_MASK:
            _, digits, lowest, highest, _ = struct.unpack_from(V0_HEADER, content)
            begin, length = struct.calcsize(V0_HEADER), len(content) - struct.calcsize(V0_HEADER)
        else:
            _, length, _, digits, lowest, highest, _ = struct.unpack_from(V1_HEADER, content)
            begin = struct.calcsize(V1_HEADER)
    except struct.error:
        raise HdrError("the histogram is truncated") from None
    if not 0 <= length <= len(content) - begin:
        raise HdrError("the histogram is truncated")
    data = content[begin : begin + length]
    if cookie & _COOKIE_MASK == V2 & _COOKIE_MASK:
        return digits, lowest, highest, _indexed(_numbers(data))
    # HdrHistogram ignores the lowest bit of the word size.
    word = (cookie & 0xF0) >> 4 & 0xE
    if cookie & _COOKIE_MASK not in (V1 & _COOKIE_MASK, V0 & _COOKIE_MASK) or word not in _WORDS or length % word:
        raise HdrError("the histogram has a malformed header")
    return digits, lowest, highest, _fixed(data, word)


def _indexed(numbers: Iterator[int]) -> Iterator[tuple[int, int]]:
    """Yield each count of V2 with its index."""
    index = 0
    for read, number in enumerate(numbers):
        if read >= MAX_NUMBERS:
            raise HdrError(f"the histogram is larger than {MAX_NUMBERS:,} counts")
        if number > 0:
            yield index, number
        index += -number if number < 0 else 1


def _fixed(data: bytes, word: int) -> Iterator[tuple[int, int]]:
    """Yield each count of V1 or V0 that is not zero, with its index."""
    for index, (number,) in enumerate(struct.iter_unpack(f">{_WORDS[word]}", data)):
        if number < 0:
            raise HdrError("the histogram has a negative count")
        if number:
            yield index, number


def _highest_equivalent(index: int, unit_bits: int, half_bits: int) -> int:
    """Return the highest value that is counted at an index.

    Each of the first 2 * 2**half_bits indices covers one unit. Each index in every further group of 2**half_bits covers
    twice as many units as an index in the group before.
    """
    bucket = max((index >> half_bits) - 1, 0)
    offset = index - (bucket << half_bits)
    shift = bucket + unit_bits
    return ((offset + 1) << shift) - 1 if bucket < 64 else 1 << 64


def _numbers(data: bytes) -> Iterator[int]:
    """Yield ZigZag LEB128 integers; as in HdrHistogram, the ninth byte of an integer has eight bits."""
    position = 0
    while position < len(data):
        value = shift = 0
        while True:
            if position >= len(data):
                raise HdrError("the histogram is truncated")
            byte = data[position]
            position += 1
            is_ninth = shift == 56
            value |= (byte if is_ninth else byte & 0x7F) << shift
            shift += 7
            if is_ninth or byte < 0x80:
                break
        yield (value >> 1) ^ -(value & 1)
