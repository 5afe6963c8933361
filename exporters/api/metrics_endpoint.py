"""`/metrics`: the exposition in the format and encoding that the client prefers."""

from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response

from exporters.api.responses import accept_quality, parse_accept

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def prefers_openmetrics(accept: str) -> bool:
    """Return whether an Accept header prefers OpenMetrics to the text format."""
    openmetrics = text = 0.0
    for name, parameters, quality in parse_accept(accept):
        version = parameters.get("version", "")
        if name == "application/openmetrics-text" and version in ("", "1.0.0"):
            openmetrics = max(openmetrics, quality)
        elif name == "text/plain" and version in ("", "0.0.4"):
            text = max(text, quality)
    return openmetrics > text


class Page(Protocol):
    """An object with metrics to expose."""

    def metrics(self, *, openmetrics: bool, compressed: bool) -> bytes:
        """Return the exposition, compressed with gzip if `compressed`."""


def exposition(page: Page, request: Request) -> Response:
    """Return the exposition of `page`."""
    openmetrics = prefers_openmetrics(request.headers.get("accept", ""))
    compressed = accept_quality(request.headers.get("accept-encoding", ""), "gzip") > 0
    headers = {
        "content-type": OPENMETRICS if openmetrics else TEXT,
        "cache-control": "no-store",
        "vary": "accept, accept-encoding",
    }
    if compressed:
        headers["content-encoding"] = "gzip"
    return Response(page.metrics(openmetrics=openmetrics, compressed=compressed), 200, headers)
