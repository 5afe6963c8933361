"""Requests to an ASGI application, without a network."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp


@dataclass(frozen=True)
class Answered:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def content(self) -> Any:
        """The body, parsed as JSON."""
        return json.loads(self.body)


def request_scope(method: str, target: str, peer: str, **headers: str) -> dict[str, Any]:
    """Return a request's ASGI scope; in header names, `_` stands for `-`."""
    path, _, query = target.partition("?")
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(key.replace("_", "-").encode(), value.encode()) for key, value in headers.items()],
        "client": (peer, 1),
        "server": ("127.0.0.1", 17199),
        "scheme": "http",
        "http_version": "1.1",
        "state": {},
    }


def ask(app: ASGIApp, method: str, target: str, body: bytes = b"", peer: str = "127.0.0.1", **headers: str) -> Answered:
    """Return the response to a request; in header names, `_` stands for `-`."""
    scope = request_scope(method, target, peer, **headers)
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def asking() -> None:
        await app(scope, receive, send)

    asyncio.run(asking())
    response_headers = {key.decode().lower(): value.decode() for key, value in sent[0]["headers"]}
    return Answered(sent[0]["status"], response_headers, b"".join(message.get("body", b"") for message in sent[1:]))
