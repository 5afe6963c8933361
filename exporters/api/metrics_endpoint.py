"""`/metrics`: in which form, and gzipped or not, as the client prefers."""

from starlette.requests import Request
from starlette.responses import Response

from exporters.api.agent_api import AgentApi
from exporters.api.responses import accepted, takes

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def prefers_openmetrics(accept: str) -> bool:
    """Return whether an Accept header names OpenMetrics, and takes nothing of the older form as gladly."""
    openmetrics = text = 0.0
    for name, parameters, quality in accepted(accept):
        version = parameters.get("version", "")
        if name == "application/openmetrics-text" and version in ("", "1.0.0"):
            openmetrics = max(openmetrics, quality)
        elif name == "text/plain" and version in ("", "0.0.4"):
            text = max(text, quality)
    return openmetrics > text


def exposition(served: AgentApi, request: Request) -> Response:
    """Return the exposition of the last tick."""
    openmetrics = prefers_openmetrics(request.headers.get("accept", ""))
    compressed = takes(request.headers.get("accept-encoding", ""), "gzip") > 0
    headers = {
        "content-type": OPENMETRICS if openmetrics else TEXT,
        "cache-control": "no-store",
        "vary": "accept, accept-encoding",
    }
    if compressed:
        headers["content-encoding"] = "gzip"
    return Response(served.metrics(openmetrics=openmetrics, compressed=compressed), 200, headers)
