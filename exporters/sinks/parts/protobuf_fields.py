"""Protobuf encoding of the few messages of remote write and OTLP.

The labels of a series are encoded only once, so encoding a sample takes a concatenation. A generated class would take
20 times as long. The tests decode everything with the protobuf library.
"""

from collections.abc import Iterator

VARINT, FIXED64, BYTES = 0, 1, 2


def varint(number: int) -> bytes:
    """Encode a non-negative integer."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def bytes_field(number: int, content: bytes) -> bytes:
    """Encode a field that contains a string or a message."""
    return varint(number << 3 | BYTES) + varint(len(content)) + content


def varint_field(number: int, value: int) -> bytes:
    return varint(number << 3 | VARINT) + varint(value)


def fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and content of each field with a string or a message, up to the first field of another type."""
    position = 0
    while position < len(message):
        key, position = read_varint(message, position)
        if key & 7 != BYTES:
            return
        length, position = read_varint(message, position)
        yield key >> 3, message[position : position + length]
        position += length


def read_varint(message: bytes, position: int) -> tuple[int, int]:
    """Return an integer and the position after it."""
    number = shift = 0
    while True:
        byte = message[position]
        number |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return number, position
