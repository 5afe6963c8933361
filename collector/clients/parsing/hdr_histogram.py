"""Decodes HdrHistogram's compressed format V2.

The format is that of HdrHistogram's `encodeIntoCompressedByteBuffer`, in base64: a cookie and a length, then zlib data
with a header of 40 bytes and the counts as ZigZag LEB128 integers, in which a negative number stands for that many
counts of zero.
"""

import struct
import zlib
from base64 import b64decode
from collections.abc import Iterator

COMPRESSED_V2, COMPRESSED_V1 = 0x1C849304, 0x1C849302
V2 = 0x1C849303
# The upper four bits of a cookie's low byte give the word size, which V2 does not use.
_COOKIE_MASK = ~0xF0
HEADER_BYTES = 40
MAX_BYTES = 64 << 20
MAX_DIGITS = 5


class HdrError(ValueError):
    """The text is not a histogram that can be decoded; the message states why."""


def decoded(text: str) -> dict[int, int]:
    """Return the counts of a histogram by value.

    Each value is the highest one that the histogram does not distinguish from the recorded one, in the unit in which
    values were recorded. Raises HdrError.
    """
    try:
        raw = b64decode(text, validate=True)
        cookie, length = struct.unpack_from(">ii", raw)
    except (ValueError, struct.error):
        raise HdrError("not a base64-encoded HdrHistogram") from None
    if cookie & _COOKIE_MASK == COMPRESSED_V1 & _COOKIE_MASK:
        raise HdrError("HdrHistogram format V1 is not supported (hint: write the log with HdrHistogram 2.1.9 or later)")
    if cookie & _COOKIE_MASK != COMPRESSED_V2 & _COOKIE_MASK:
        raise HdrError("not a compressed HdrHistogram")
    if len(raw) - 8 < length:
        raise HdrError("truncated")
    return _counts(_decompressed(raw[8 : 8 + length]))


def _decompressed(data: bytes) -> bytes:
    decompressor = zlib.decompressobj()
    try:
        content = decompressor.decompress(data, MAX_BYTES)
    except zlib.error:
        raise HdrError("damaged") from None
    if decompressor.unconsumed_tail:
        raise HdrError(f"larger than {MAX_BYTES >> 20} MiB")
    if not decompressor.eof:
        raise HdrError("truncated")
    return content


def _counts(content: bytes) -> dict[int, int]:
    try:
        cookie, length, _, digits, lowest, highest, _ = struct.unpack_from(">iiiiqqd", content)
    except struct.error:
        raise HdrError("truncated") from None
    if cookie & _COOKIE_MASK != V2 & _COOKIE_MASK or not 0 <= digits <= MAX_DIGITS or not 1 <= lowest < highest:
        raise HdrError("malformed header")
    if not 0 <= length <= len(content) - HEADER_BYTES:
        raise HdrError("truncated")
    unit_bits = lowest.bit_length() - 1
    # The smallest power of two that distinguishes values of `digits` digits.
    half_bits = max((2 * 10**digits - 1).bit_length(), 1) - 1
    counts: dict[int, int] = {}
    index = 0
    for number in _numbers(content[HEADER_BYTES : HEADER_BYTES + length]):
        if number < 0:
            index -= number
            continue
        value = _highest_equivalent(index, unit_bits, half_bits)
        if value.bit_length() > highest.bit_length() + 1:
            raise HdrError("malformed counts")
        if number:
            counts[value] = number
        index += 1
    return counts


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
                raise HdrError("truncated")
            byte = data[position]
            position += 1
            is_ninth = shift == 56
            value |= (byte if is_ninth else byte & 0x7F) << shift
            shift += 7
            if is_ninth or byte < 0x80:
                break
        yield (value >> 1) ^ -(value & 1)
