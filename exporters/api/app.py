"""The API as an application: which path answers what. `auth` checks access, `request_limits` bounds the requests."""

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
from exporters.api.agent_api import AgentApi
from exporters.api.metrics_endpoint import exposition
from exporters.api.openapi import PATHS, description
from exporters.api.responses import answer, refusal, said
from exporters.api.samples_endpoint import Samples

Answering = Callable[[Request], Awaitable[ASGIApp]]


class Endpoint:
    """What answers on one path, by method; HEAD is GET without the body, which the server leaves out."""

    def __init__(self, **methods: Answering) -> None:
        self.methods: Mapping[str, Answering] = methods
        self.allowed = sorted({*methods, *(["HEAD"] if "GET" in methods else [])})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        method = scope["method"]
        answering = self.methods.get("GET" if method == "HEAD" else method)
        made: ASGIApp
        if answering is None:
            made = refusal(405, f"only {', '.join(self.allowed)}", {"allow": ", ".join(self.allowed)})
        else:
            try:
                made = await answering(Request(scope, receive))
            except ValueError as error:
                made = refusal(400, str(error))
        await made(scope, receive, send)


def build(served: AgentApi, clock: Callable[[], float] = time.time) -> Starlette:
    """Return the application that serves `served`; `clock` is the wall clock."""
    found = Starlette(
        routes=[Route(path, endpoint) for path, endpoint in endpoints(served, clock).items()],
        exception_handlers={HTTPException: _no_such, Exception: _failed},
    )
    found.router.redirect_slashes = False
    return found


def endpoints(served: AgentApi, clock: Callable[[], float]) -> dict[str, Endpoint]:
    """Return what answers on which path."""
    samples = Samples(served)
    described = description(version("casstat"))

    def plain(make: Callable[[Request], ASGIApp]) -> Endpoint:
        async def answering(request: Request) -> ASGIApp:
            return make(request)

        return Endpoint(GET=answering)

    return {
        "/": plain(lambda _: said(_page(), media_type="text/html")),
        "/metrics": plain(lambda request: exposition(served, request)),
        "/-/healthy": plain(lambda _: _state(served.unhealthy(), "healthy")),
        "/-/ready": plain(lambda _: _state(served.unready(), "ready")),
        "/api/v1/openapi.json": plain(lambda _: answer(described)),
        "/api/v1/node": plain(lambda _: answer(served.node())),
        "/api/v1/time": plain(
            lambda request: answer({"received_s": request.scope.get("casstat.received_s", clock()), "sent_s": clock()})
        ),
        "/api/v1/samples": plain(samples.answered),
        "/api/v1/journal": Endpoint(GET=lambda request: journal_endpoint.listed(served, request)),
        "/api/v1/journal/{name}": Endpoint(
            GET=lambda request: journal_endpoint.download(served, request.path_params["name"])
        ),
        "/api/v1/runs": Endpoint(
            GET=lambda request: runs_endpoint.listed(served, request),
            POST=lambda request: runs_endpoint.begin(served, request),
        ),
        "/api/v1/runs/{run}/marks": Endpoint(POST=lambda request: runs_endpoint.mark(served, request)),
        "/api/v1/runs/{run}/end": Endpoint(POST=lambda request: runs_endpoint.end(served, request)),
    }


def _state(why: str, well: str) -> Response:
    text = " ".join(why.split()) or well
    return said(f"{text}\n".encode(), 503 if why else 200, "text/plain")


def _page() -> bytes:
    links = [
        f'<li><a href="{escape(path)}">{escape(path)}</a> {escape(operations["get"]["summary"])}</li>'
        for path, operations in PATHS.items()
        if "get" in operations and "{" not in path and path != "/"
    ]
    return f"<!doctype html><title>casstat agent</title><h1>casstat agent</h1><ul>{''.join(links)}</ul>".encode()


async def _no_such(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return refusal(status, "there is nothing at this path" if status == 404 else "cannot be answered")


async def _failed(_: Request, __: Exception) -> Response:
    return refusal(500, "this is a fault of the agent: see its log")
