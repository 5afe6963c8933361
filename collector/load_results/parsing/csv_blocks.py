"""Reads large CSV files in blocks of whole records; quoted fields may contain line breaks.

A stray quote would make a lenient parser read many records as one field, so quotes are accepted only around fields.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from collector.load_results.client_format import ClientFormatError

BLOCK_BYTES = 4 << 20
MAX_RECORD_BYTES = 16 << 20


def blocks(file: BinaryIO, line: int, delimiter: str) -> Iterator[tuple[int, bytes]]:
    """Yield blocks, each with the number of its first line; only the last one may end without a line break.

    `line` is the number of the file's next line. Raises ClientFormatError and OSError.
    """
    quoted = _quoted_field(delimiter)
    rest = b""
    while data := file.read(BLOCK_BYTES):
        rest += data
        end = end_of_records(rest)
        if end:
            block, rest = rest[:end], rest[end:]
            _check_quotes(block, line, quoted)
            yield line, block
            line += block.count(b"\n")
        elif len(rest) > MAX_RECORD_BYTES:
            raise ClientFormatError(f"line {line}: longer than {MAX_RECORD_BYTES >> 20} MiB, or unclosed quote")
    if rest:
        yield line, rest


def end_of_records(data: bytes) -> int:
    """Return the position after the last line break outside quotes: an even number of quotes precedes it."""
    end = data.rfind(b"\n")
    quotes = data.count(b'"', 0, max(end, 0))
    while end >= 0 and quotes % 2:
        before_quote = data.rfind(b"\n", 0, data.rfind(b'"', 0, end))
        quotes -= data.count(b'"', max(before_quote, 0), end)
        end = before_quote
    return end + 1


def _quoted_field(delimiter: str) -> re.Pattern[bytes]:
    ends = re.escape(delimiter).encode() + rb"\r\n"
    # The pattern begins with a quote, because the search for a fixed character is fast.
    return re.compile(rb'"(?<![^%s]")[^"]*(?:""[^"]*)*"(?![^%s])' % (ends, ends))


def _check_quotes(block: bytes, line: int, quoted: re.Pattern[bytes]) -> None:
    if b'"' not in block or b'"' not in quoted.sub(b"", block):
        return
    unquoted = quoted.sub(lambda match: b"\n" * match[0].count(b"\n"), block)
    line += unquoted.count(b"\n", 0, unquoted.index(b'"'))
    raise ClientFormatError(f"line {line}: unexpected quote inside a field")
