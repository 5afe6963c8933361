"""A journal's records: compact JSON objects, one per line, each with a checksum; `zstdcat FILE | jq` reads them."""

import json
import re
import zlib
from collections.abc import Mapping
from typing import Any

SEAL = b',"crc":"'
# The size of the checksum's key and eight digits, and of the closing quote and brace.
_SEAL_BYTES = len(SEAL) + 8 + 2
# A JSON escape for a surrogate. A pair of them stands for one character; a single one is invalid.
HALF = re.compile(rb"\\u[dD][89a-fA-F]")


class LineError(ValueError):
    """A line is not a JSON object, or its checksum is missing or wrong; the message states which."""


def sealed(content: Mapping[str, Any]) -> bytes:
    """Return a record's line, with checksum and line end; the content must not be empty."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    # In a name that was not valid UTF-8, lone surrogates stand for invalid bytes; they are written as question marks.
    return resealed(text.encode(errors="replace"))


def resealed(text: bytes) -> bytes:
    """Return the line, with checksum and line end, for a record's JSON text as returned by `checked`."""
    body = text[:-1]
    return b'%s%s%08x"}\n' % (body, SEAL, zlib.crc32(body))


def checked(line: bytes) -> bytes:
    """Return the JSON text of a line without its line end, without the checksum. Raises LineError."""
    body, seal = line[:-_SEAL_BYTES], line[-_SEAL_BYTES:]
    if not seal.startswith(SEAL) or not seal.endswith(b'"}'):
        raise LineError("no checksum")
    if seal[len(SEAL) : -2] != b"%08x" % zlib.crc32(body):
        raise LineError("checksum mismatch")
    return body + b"}"


def parsed(text: bytes) -> dict[str, Any]:
    """Parse a record's JSON text. Raises LineError."""
    try:
        content = json.loads(text, parse_constant=_refused)
        if HALF.search(text):
            json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise LineError(f"invalid JSON: {error}") from None
    if not isinstance(content, dict):
        raise LineError("not a JSON object")
    return content


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not allowed")
