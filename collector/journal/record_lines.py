"""A journal's records: compact JSON objects, one per line, each with a checksum; `zstdcat FILE | jq` reads them."""

import json
import re
import zlib
from collections.abc import Mapping
from typing import Any

SEAL = b',"crc":"'
# The size of the checksum's key and eight digits, the closing quote and brace, and the line end.
_SEAL_BYTES = len(SEAL) + 8 + 3
# A JSON escape for a surrogate. A pair of them stands for one character; a single one is invalid.
HALF = re.compile(rb"\\u[dD][89a-fA-F]")


class LineError(ValueError):
    """A line is truncated, is not a JSON object or has a wrong checksum; the message states which."""


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
    """Return a line's JSON text without the checksum; `line` must include its line end. Raises LineError."""
    if not line.endswith(b"\n"):
        raise LineError("truncated")
    body, seal = line[:-_SEAL_BYTES], line[-_SEAL_BYTES:]
    if not seal.startswith(SEAL) or not seal.endswith(b'"}\n'):
        raise LineError("no checksum")
    if seal[len(SEAL) : -3] != b"%08x" % zlib.crc32(body):
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
