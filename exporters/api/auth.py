"""Access control: rate limit, Host header, password and permission, checked for every request."""

import time
from collections.abc import Callable
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from exporters.api.credentials import BusyError, Passwords, credentials
from exporters.api.host_header import Hosts
from exporters.api.responses import error_response
from exporters.api.web_access import WebConfig
from exporters.api.write_permission import read_refusal, write_refusal
from exporters.rate_limited_logger import RateLimitedLogger

READS = ("GET", "HEAD", "OPTIONS", "TRACE")


class Guard:
    """Passes a request to the application if the current configuration allows it."""

    def __init__(
        self,
        app: ASGIApp,
        config: Callable[[], WebConfig],
        passwords: Passwords,
        log: RateLimitedLogger,
        hosts: Hosts,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        anonymous_reads: bool = False,
    ) -> None:
        """Guard `app`; `config` returns the current configuration.

        `anonymous_reads` states whether other machines may read data without credentials.
        """
        self._app = app
        self._config = config
        self._passwords = passwords
        self._log = log
        self._hosts = hosts
        self._monotonic = monotonic
        self._anonymous_reads = anonymous_reads
        self._tokens, self._counted_s = 0.0, -1e9

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on or refuse it."""
        if scope["type"] != "http":
            return
        config = self._config()
        if config.headers:
            send = _adding(config.headers, send)
        refused = await self._refused(config, scope)
        await (refused or self._app)(scope, receive, send)

    async def _refused(self, config: WebConfig, scope: Scope) -> ASGIApp | None:
        """Return an error response if the request is not allowed, else None."""
        if config.interval_s and not self._has_token(config):
            reason = "too many requests (hint: try again, or raise rate_limit in web_config_file)"
            return error_response(429, reason, {"retry-after": "1"})
        headers = dict(scope["headers"])
        peer = scope["client"][0] if scope.get("client") else ""
        # With TLS or passwords, DNS rebinding fails anyway: the certificate does not match the name of the attacker's
        # page, or the browser has no password for that name.
        if not config.users and config.tls is None:
            reason = self._hosts.refusal_reason(headers, scope["server"][0] if scope.get("server") else "")
            if reason:
                self._log(f"{peer}: request refused: {reason}", kind="host")
                return error_response(403, reason)
        if config.users:
            refused = await self._not_known(config, headers.get(b"authorization", b""), peer)
            if refused is not None:
                return refused
        return self._not_permitted(config, scope, headers, peer)

    def _not_permitted(self, config: WebConfig, scope: Scope, headers: dict[bytes, bytes], peer: str) -> ASGIApp | None:
        """Return an error response if the client may not read or change what it requests, else None."""
        has_credentials = bool(config.users or scope.get("casstat.certified"))
        if scope["method"] in READS:
            kind = "read"
            reason = read_refusal(
                scope["path"], peer, headers, has_credentials=has_credentials, anonymous_reads=self._anonymous_reads
            )
        else:
            kind = "write"
            reason = write_refusal(
                peer,
                headers,
                requires_credentials=config.requires_credentials,
                has_credentials=has_credentials,
                known_host=self._hosts.knows(headers.get(b"host", b"").decode("latin-1")),
            )
        if reason:
            self._log(f"{peer}: {kind} refused: {reason}", kind=kind)
            return error_response(403, reason)
        return None

    async def _not_known(self, config: WebConfig, header: bytes, peer: str) -> ASGIApp | None:
        given = credentials(header)
        challenge = {"www-authenticate": 'Basic realm="casstat", charset="UTF-8"'}
        if given is None:
            self._log(f"{peer}: request refused: user name and password are required", kind="unauthenticated")
            return error_response(401, "user name and password are required", challenge)
        try:
            if await self._passwords.check(dict(config.users), *given):
                return None
        except BusyError:
            self._log(f"{peer}: too many passwords to check; some requests were refused", kind="busy")
            return error_response(503, "too many passwords to check (hint: try again)", {"retry-after": "1"})
        self._log(f"{peer}: wrong user name or password", kind="password")
        return error_response(401, "wrong user name or password", challenge)

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
            response_headers: Any = MutableHeaders(scope=message)
            for name, value in headers:
                response_headers[name] = value
        await send(message)

    return sending
