"""Before every request: who asks, whether they may, and how often."""

import time
from collections.abc import Callable
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from exporters.api.credentials import BusyError, Passwords, credentials
from exporters.api.host_header import Hosts
from exporters.api.responses import refusal
from exporters.api.web_access import WebConfig
from exporters.api.write_permission import refused_write
from exporters.rate_limited_logger import RateLimitedLogger

READS = ("GET", "HEAD", "OPTIONS", "TRACE")


class Guard:
    """Lets through to the application what the configuration in force allows."""

    def __init__(
        self,
        app: ASGIApp,
        config: Callable[[], WebConfig],
        passwords: Passwords,
        say: RateLimitedLogger,
        hosts: Hosts,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take who is guarded, what the configuration is, where to say who was refused, and under which names."""
        self._app = app
        self._config = config
        self._passwords = passwords
        self._say = say
        self._hosts = hosts
        self._monotonic = monotonic
        self._tokens, self._counted_s = 0.0, -1e9

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        config = self._config()
        if config.headers:
            send = _adding(config.headers, send)
        refused = await self._refused(config, scope)
        await (refused or self._app)(scope, receive, send)

    async def _refused(self, config: WebConfig, scope: Scope) -> ASGIApp | None:
        """Return the answer to who may not ask this; None for who may."""
        if config.interval_s and not self._has_token(config):
            return refusal(429, "too many requests (rate_limit)", {"retry-after": "1"})
        headers = dict(scope["headers"])
        peer = scope["client"][0] if scope.get("client") else ""
        # With TLS a page under another name fails at the certificate; with passwords its browser knows none.
        if not config.users and config.tls is None:
            reason = self._hosts.refused(headers, scope["server"][0] if scope.get("server") else "")
            if reason:
                self._say(f"{peer}: a request was refused: {reason}", kind="host")
                return refusal(403, reason)
        if config.users:
            refused = await self._not_known(config, headers.get(b"authorization", b""), peer)
            if refused is not None:
                return refused
        if scope["method"] in READS:
            return None
        shown = bool(config.users or scope.get("casstat.certified"))
        known_host = self._hosts.knows(headers.get(b"host", b"").decode("latin-1"))
        why = refused_write(peer, headers, asks=config.asks, shown=shown, known_host=known_host)
        if why:
            self._say(f"{peer}: a change was refused: {why}", kind="write")
            return refusal(403, why)
        return None

    async def _not_known(self, config: WebConfig, header: bytes, peer: str) -> ASGIApp | None:
        given = credentials(header)
        challenge = {"www-authenticate": 'Basic realm="casstat", charset="UTF-8"'}
        if given is None:
            self._say(f"{peer}: asks without name and password, and is refused", kind="nobody")
            return refusal(401, "name and password are wanted", challenge)
        try:
            if await self._passwords.fit(dict(config.users), *given, peer):
                return None
        except BusyError:
            self._say(f"{peer}: too many passwords to check: some who ask must do so again", kind="busy")
            return refusal(503, "too many passwords to check: ask again", {"retry-after": "1"})
        self._say(f"{peer}: a wrong name or password was refused", kind="password")
        return refusal(401, "wrong name or password", challenge)

    def _has_token(self, config: WebConfig) -> bool:
        now_s = self._monotonic()
        self._tokens = min(config.burst, self._tokens + (now_s - self._counted_s) / config.interval_s)
        self._counted_s = now_s
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


def _adding(headers: tuple[tuple[str, str], ...], send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            found: Any = MutableHeaders(scope=message)
            for name, value in headers:
                found[name] = value
        await send(message)

    return sending
