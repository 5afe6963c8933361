"""The application that serves the `/metrics` pages of several nodes, and their list for Prometheus' HTTP discovery."""

from collections.abc import Mapping

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from exporters.api.app import application, plain
from exporters.api.metrics_endpoint import Page, exposition
from exporters.api.responses import json_response

TARGETS = "/targets"


def pages_app(pages: Mapping[str, Page]) -> Starlette:
    """Return the application that serves each page at `/metrics/NODE`, by the node's name."""

    def page(request: Request) -> Response:
        name = request.path_params["node"]
        if name not in pages:
            raise HTTPException(404)
        return exposition(pages[name], request)

    return application(
        {TARGETS: plain(lambda request: json_response(_targets(request, pages))), "/metrics/{node}": plain(page)}
    )


def _targets(request: Request, names: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the targets in the format of `http_sd_configs`; their address is the one that the client has used."""
    address = request.url.netloc
    return [
        {"targets": [address], "labels": {"__metrics_path__": f"/metrics/{name}", "instance": name}} for name in names
    ]
