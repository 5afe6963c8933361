"""What all endpoints share: the agent's interface, JSON responses, uniform error responses, and content negotiation.

Everything that the API serves comes through the agent's interface.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import Response

from exporters.recent_ticks import RecentTicks


class TooManyChangesError(Exception):
    """Raised if too many changes are waiting for the next tick; the message states the limit."""


class RunsApi(Protocol):
    """The runs of an agent. Methods may be called from any thread, and may block."""

    def all_runs(self) -> Sequence[Mapping[str, Any]]:
        """Return the runs, oldest first, with id, name, begin_s, end_s (None while the run is active) and marks.

        Each mark has time_s and text.
        """

    def begin(self, name: str, lease_s: float | None = None) -> Mapping[str, Any]:
        """Begin a run and return it. If `lease_s` is given, the run ends when its lease is not renewed for that long.

        Raises TooManyChangesError, or OSError if writing to disk fails.
        """

    def renew(self, identifier: str) -> Mapping[str, Any]:
        """Renew a run's lease and return the run.

        Raises KeyError for an unknown run, and ValueError for one that has ended.
        """

    def mark(self, identifier: str, text: str) -> Mapping[str, Any]:
        """Add a mark with the current time to a run, and return the run.

        Raises KeyError for an unknown run, ValueError for one that has ended or has no room for more marks, and the
        errors of `begin`.
        """

    def end(self, identifier: str) -> Mapping[str, Any]:
        """End a run at the current time and return it. Raises the same errors as `mark`."""


class AgentApi(Protocol):
    """The agent behind the API. Methods may be called from any thread, and do not block."""

    recent: RecentTicks
    """The ticks that the API serves; earlier ones are in the journal."""
    journal: Path
    """The journal's directory."""

    @property
    def runs(self) -> RunsApi: ...

    def metrics(self, *, openmetrics: bool, compressed: bool) -> bytes:
        """Return the exposition of the last tick, compressed with gzip if `compressed`."""

    def node(self) -> Mapping[str, Any]:
        """Return the node's identity, transport and state as values that JSON can represent."""

    def unready(self) -> str:
        """Return the reason why there are no values from the node; "" if there are values."""

    def unhealthy(self) -> str:
        """Return a problem with the agent itself, such as a stalled clock, or "" if there is none."""


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
