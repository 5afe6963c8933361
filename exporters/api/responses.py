"""JSON responses, uniform error responses, and content negotiation."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

JSON = "application/json"
EVENTS = "text/event-stream"


def json_response(content: Any, status: int = 200) -> Response:
    """Return `content` as a JSON response that must not be cached."""
    return no_store(to_json(content), status)


def to_json(content: Any) -> bytes:
    """Return `content` as compact JSON."""
    return json.dumps(content, separators=(",", ":")).encode()


def no_store(body: bytes, status: int = 200, media_type: str = JSON) -> Response:
    """Return a response that must not be cached."""
    return Response(body, status, {"cache-control": "no-store"}, media_type)


def error_response(status: int, reason: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error response: {"error": reason}."""
    response = json_response({"error": reason}, status)
    response.headers.update(headers or {})
    return response


def parse_accept(header: str) -> list[tuple[str, dict[str, str], float]]:
    """Return the types or codings in an Accept or Accept-Encoding header, each with its parameters and quality."""
    accepted = []
    for part in header.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        parameters_by_name = dict(parameter.partition("=")[::2] for parameter in parameters)
        try:
            quality = min(max(float(parameters_by_name.pop("q", "1")), 0.0), 1.0)
        except ValueError:
            quality = 0.0
        if name:
            accepted.append((name, parameters_by_name, quality))
    return accepted


def accept_quality(header: str, name: str) -> float:
    """Return the quality (0 to 1) of `name` in an Accept or Accept-Encoding header; 0 if it is not listed."""
    return max((quality for parameter, _, quality in parse_accept(header) if parameter == name), default=0.0)


def time_parameter(request: Request, key: str) -> float | None:
    """Return the time in a query parameter, or None if it is missing. Raises ValueError if it is invalid."""
    text = request.query_params.get(key)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    # Rejects infinity, NaN, and numbers that are too large to be plausible times.
    if not -1e11 < value < 1e11:
        raise ValueError(f"{key} must be a time, in seconds since the epoch")
    return value
