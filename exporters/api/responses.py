"""Answers: JSON, errors in one form, and what a client says it takes."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

JSON = "application/json"
EVENTS = "text/event-stream"


def answer(content: Any, status: int = 200) -> Response:
    """Return `content` as JSON that nobody keeps."""
    return said(encoded(content), status)


def encoded(content: Any) -> bytes:
    """Return JSON."""
    return json.dumps(content, separators=(",", ":")).encode()


def said(body: bytes, status: int = 200, media_type: str = JSON) -> Response:
    """Return bytes that nobody keeps."""
    return Response(body, status, {"cache-control": "no-store"}, media_type)


def refusal(status: int, why: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error in the form that all have."""
    made = answer({"error": why}, status)
    made.headers.update(headers or {})
    return made


def accepted(header: str) -> list[tuple[str, dict[str, str], float]]:
    """Return the media types or codings of an Accept header with their parameters and quality, as they stand there."""
    found = []
    for part in header.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        given = dict(each.partition("=")[::2] for each in parameters)
        try:
            quality = min(max(float(given.pop("q", "1")), 0.0), 1.0)
        except ValueError:
            quality = 0.0
        if name:
            found.append((name, given, quality))
    return found


def takes(header: str, name: str) -> float:
    """Return with what quality (0 to 1) a header takes a type or coding that it names; 0 where it names another."""
    return max((quality for each, _, quality in accepted(header) if each == name), default=0.0)


def number(request: Request, key: str) -> float | None:
    """Return a number of the query, None where there is none. Raises ValueError with a message."""
    text = request.query_params.get(key)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    # Neither infinite nor NaN, and no time that a calendar cannot hold.
    if not -1e11 < value < 1e11:
        raise ValueError(f"{key} must be a time, in seconds since the epoch")
    return value
