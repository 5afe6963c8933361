"""A journal's lines: compact JSON objects, each with its own checksum, so that `zstdcat FILE | jq` reads them too."""

import json
import re
import zlib
from collections.abc import Mapping
from typing import Any

SEAL = b',"crc":"'
# The seal, eight digits, the ends of the text and of the object, and of the line.
_SEAL_BYTES = len(SEAL) + 8 + 3
# What escapes the half of a character; two of them may be a whole one.
HALF = re.compile(rb"\\u[dD][89a-fA-F]")


class LineError(ValueError):
    """A line that is not what was written; the message says how that shows."""


def sealed(content: Mapping[str, Any]) -> bytes:
    """Return the line, with its end, that holds the content, which must have an entry."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    # A name that came as bytes of another encoding has halves of characters, which no file can have.
    body = text.encode(errors="replace")[:-1]
    return b'%s%s%08x"}\n' % (body, SEAL, zlib.crc32(body))


def checked(line: bytes) -> bytes:
    """Return the text of the object in a line, given with its end, without its seal. Raises LineError."""
    if not line.endswith(b"\n"):
        raise LineError("is cut short")
    body, seal = line[:-_SEAL_BYTES], line[-_SEAL_BYTES:]
    if not seal.startswith(SEAL) or not seal.endswith(b'"}\n'):
        raise LineError("has no checksum")
    if seal[len(SEAL) : -3] != b"%08x" % zlib.crc32(body):
        raise LineError("does not fit its checksum")
    return body + b"}"


def opened(line: bytes) -> dict[str, Any]:
    """Return what a line holds, given with its end. Raises LineError."""
    return parsed(checked(line))


def parsed(text: bytes) -> dict[str, Any]:
    """Return what the text of a line's object says. Raises LineError."""
    try:
        content = json.loads(text, parse_constant=_refused)
        if HALF.search(text):
            json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise LineError(f"is no JSON: {error}") from None
    if not isinstance(content, dict):
        raise LineError("is no object")
    return content


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number")
