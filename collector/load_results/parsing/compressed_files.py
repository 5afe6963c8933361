"""Reads gzip files, which may consist of several members; memory does not grow with the file."""

import os
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from collector.load_results.client_format import ClientFormatError
from collector.printable import one_line

MAGIC = b"\x1f\x8b"
# Results are text, of which gzip keeps a tenth or a twentieth. Data that shrinks much more is made to fill the disk.
MAX_RATIO = 200
MIN_CHECKED_BYTES = 256 << 20
CHUNK_BYTES = 1 << 20
OTHER_MAGICS = {
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
}
_GZIP = 16 + zlib.MAX_WBITS


def require_no_other_compression(head: bytes) -> None:
    """Raise ClientFormatError if a file that begins with `head` is compressed, but not by gzip."""
    for magic, name in OTHER_MAGICS.items():
        if head.startswith(magic):
            raise ClientFormatError(f"compressed with {name} (hint: unpack the file, or compress it with gzip)")


def decompressed(file: BinaryIO, notes: list[str]) -> Iterator[bytes]:
    """Yield the content of a gzip file in parts of at most CHUNK_BYTES; append what is wrong with its end to `notes`.

    Raises ClientFormatError if the file is damaged or expands too much, and OSError.
    """
    max_bytes = max(MIN_CHECKED_BYTES, MAX_RATIO * os.fstat(file.fileno()).st_size)
    total_bytes = 0
    member = zlib.decompressobj(_GZIP)
    is_between_members = False
    while data := file.read(CHUNK_BYTES):
        while data:
            if is_between_members:
                # Some programs fill the last block with zeros.
                data = data.lstrip(b"\0")
                if not MAGIC.startswith(data[: len(MAGIC)]):
                    notes.append("the gzip file is followed by other data, which is ignored")
                    return
                member, is_between_members = zlib.decompressobj(_GZIP), not data
            try:
                part = member.decompress(data, CHUNK_BYTES)
            except zlib.error as error:
                raise ClientFormatError(f"damaged gzip file: {one_line(error)} (hint: test it with gzip -t)") from None
            total_bytes += len(part)
            if total_bytes > max_bytes:
                raise ClientFormatError(f"the gzip file expands to more than {MAX_RATIO} times its size")
            yield part
            is_between_members |= member.eof
            data = member.unused_data if member.eof else member.unconsumed_tail
    if not is_between_members:
        notes.append("the gzip file is incomplete; operations at its end are missing")
