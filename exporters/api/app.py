"""The API as an ASGI application: its paths and their handlers.

`auth` controls access, and `server` bounds the size of requests. `pages_app` serves the pages of several nodes, and
`load_app` those of load generators.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from html import escape
from importlib.metadata import version

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from exporters.api import journal_endpoint, runs_endpoint
from exporters.api.endpoint import AgentApi, error_response, json_response, no_store
from exporters.api.metrics_endpoint import Page, Turns, exposition
from exporters.api.openapi import PATHS, description
from exporters.api.samples_endpoint import Samples

TARGETS = "/targets"
"""The path of the list of nodes for Prometheus' HTTP discovery."""

Handler = Callable[[Request], Awaitable[ASGIApp]]


class Endpoint:
    """The handlers for one path, by method. For HEAD, the server sends the response to GET without its body."""

    def __init__(self, **methods: Handler) -> None:
        self.methods: Mapping[str, Handler] = methods
        self.allowed = sorted({*methods, *(["HEAD"] if "GET" in methods else [])})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"]
        handler = self.methods.get("GET" if method == "HEAD" else method)
        response: ASGIApp
        if handler is None:
            response = error_response(
                405, f"method not allowed (hint: use {', '.join(self.allowed)})", {"allow": ", ".join(self.allowed)}
            )
        else:
            try:
                response = await handler(Request(scope, receive))
            except ValueError as error:
                response = error_response(400, str(error))
        await response(scope, receive, send)


def build(agent: AgentApi, clock: Callable[[], float] = time.time) -> Starlette:
    """Return the application that serves an agent; `clock` returns the wall clock's time."""
    return _application(endpoints(agent, clock))


def _application(endpoints: Mapping[str, Endpoint]) -> Starlette:
    """Return the application that serves these endpoints by path."""
    app = Starlette(
        routes=[Route(path, endpoint) for path, endpoint in endpoints.items()],
        exception_handlers={HTTPException: _http_error, Exception: _internal_error},
    )
    app.router.redirect_slashes = False
    return app


def _plain(make: Callable[[Request], ASGIApp]) -> Endpoint:
    """Return an endpoint that answers GET with what `make` returns."""

    async def handler(request: Request) -> ASGIApp:
        return make(request)

    return Endpoint(GET=handler)


def endpoints(agent: AgentApi, clock: Callable[[], float]) -> dict[str, Endpoint]:
    """Return the endpoint of each path."""
    samples = Samples(agent)
    turns = Turns(agent.recent)
    openapi = description(version("casstat"))

    return {
        "/": _plain(lambda _: no_store(_page(), media_type="text/html")),
        "/metrics": Endpoint(GET=lambda request: _metrics(agent, turns, request)),
        "/-/healthy": _plain(lambda _: _state(agent.unhealthy(), "healthy")),
        "/-/ready": _plain(lambda _: _state(agent.unready(), "ready")),
        "/api/v1/openapi.json": _plain(lambda _: json_response(openapi)),
        "/api/v1/node": _plain(lambda _: json_response(agent.node())),
        "/api/v1/time": _plain(
            lambda request: json_response(
                {"received_s": request.scope.get("casstat.received_s", clock()), "sent_s": clock()}
            )
        ),
        "/api/v1/samples": _plain(samples.respond),
        "/api/v1/journal": Endpoint(GET=lambda request: journal_endpoint.list_files(agent, request)),
        "/api/v1/journal/{name}": Endpoint(GET=lambda request: journal_endpoint.download(agent, request)),
        "/api/v1/runs": Endpoint(
            GET=lambda request: runs_endpoint.list_runs(agent.runs, request),
            POST=lambda request: runs_endpoint.begin(agent.runs, request),
        ),
        "/api/v1/runs/{run}/marks": Endpoint(POST=lambda request: runs_endpoint.mark(agent.runs, request)),
        "/api/v1/runs/{run}/lease": Endpoint(POST=lambda request: runs_endpoint.renew(agent.runs, request)),
        "/api/v1/runs/{run}/end": Endpoint(POST=lambda request: runs_endpoint.end(agent.runs, request)),
    }


async def _metrics(agent: AgentApi, turns: Turns, request: Request) -> ASGIApp:
    await turns.take(request.client)
    return exposition(agent, request)


def _state(problem: str, success: str) -> Response:
    text = " ".join(problem.split()) or success
    return no_store(f"{text}\n".encode(), 503 if problem else 200, "text/plain")


def _page() -> bytes:
    links = [
        f'<li><a href="{escape(path)}">{escape(path)}</a> {escape(operations["get"]["summary"])}</li>'
        for path, operations in PATHS.items()
        if "get" in operations and "{" not in path and path != "/"
    ]
    return f"<!doctype html><title>casstat agent</title><h1>casstat agent</h1><ul>{''.join(links)}</ul>".encode()


def pages_app(pages: Mapping[str, Page]) -> Starlette:
    """Return the application that serves each page at `/metrics/NODE`, by the node's name."""

    def page(request: Request) -> Response:
        name = request.path_params["node"]
        if name not in pages:
            raise HTTPException(404)
        return exposition(pages[name], request)

    return _application(
        {TARGETS: _plain(lambda request: json_response(_targets(request, pages))), "/metrics/{node}": _plain(page)}
    )


def _targets(request: Request, names: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the targets in the format of `http_sd_configs`; their address is the one that the client has used."""
    address = request.url.netloc
    return [
        {"targets": [address], "labels": {"__metrics_path__": f"/metrics/{name}", "instance": name}} for name in names
    ]


def load_app(page: Page) -> Starlette:
    """Return the application that serves the series of load generators while `casstat record` runs."""
    return _application({"/metrics": _plain(lambda request: exposition(page, request))})


async def _http_error(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return error_response(status, "no such path" if status == 404 else "request failed")


async def _internal_error(_: Request, __: Exception) -> Response:
    return error_response(500, "internal error (hint: see the agent's log)")
