"""Access control for every request: rate limit, Host header, password and permission.

A web page can make its own name resolve to the agent's address and then read the responses (DNS rebinding). The browser
sends the page's name in the Host header, so an agent without credentials must not accept every name. A page cannot use
someone else's IP address as its name, so IP addresses are always accepted.

Passwords are checked against bcrypt hashes, which is slow by design and therefore happens in a low-priority thread.
"""

import asyncio
import base64
import binascii
import contextlib
import hashlib
import hmac
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from exporters.api.endpoint import error_response
from exporters.api.web_config import WebConfig
from exporters.rate_limited_logger import RateLimitedLogger

READS = ("GET", "HEAD", "OPTIONS", "TRACE")
# The cached results of password checks, and the checks that wait.
REMEMBERED, MAX_WAITING = 256, 32
NICENESS = 10
# bcrypt ignores any bytes beyond this limit, and newer versions of the library reject longer passwords.
MAX_BYTES = 72
_SALT_AND_HASH = "." * 53
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_HEADER = re.compile(r"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[^:\[\]]+))(?::\d{0,5})?")
# Browsers send at least one of these headers, and a page cannot suppress all of them.
_BROWSER = (b"origin", b"referer", b"sec-fetch-site", b"sec-fetch-mode", b"accept-language")
# The paths with the agent's data begin with this, except for two that reveal nothing about the node.
_API = "/api/"
_PUBLIC = ("/api/v1/openapi.json", "/api/v1/time")
_FORWARDED = (b"forwarded", b"x-forwarded-for", b"via")


class Hosts:
    """The host names by which clients may address this agent."""

    def __init__(self, names: Iterable[str] = (), hostname: Callable[[], str] = socket.gethostname) -> None:
        """Accept `names` in addition to "localhost" and the machine's name, which `hostname` returns."""
        self._names = frozenset(["localhost", *map(_plain, names)])
        self._hostname = hostname

    def knows(self, header: str) -> bool:
        """Return whether a Host header contains an IP address or a name of this agent."""
        match = _HEADER.fullmatch(header.lower())
        if match is None:
            return False
        name = _plain(match["six"] or match["name"])
        machine = _plain(self._hostname())
        return ip_of(name) is not None or name in self._names or name in (machine, machine.partition(".")[0])

    def refusal_reason(self, headers: Mapping[bytes, bytes], local: str) -> str:
        """Return the reason to refuse a request to an agent without TLS or passwords; "" if the request is allowed.

        `local` is the connection's local address. Unless it is a loopback address, an unknown name may be a DNS alias
        that a client such as Prometheus uses, so only requests from browsers are refused.
        """
        if b"host" not in headers:
            # Only an HTTP/1.0 request may lack the header, and browsers do not use HTTP/1.0.
            return ""
        header = headers[b"host"].decode("latin-1")
        if self.knows(header) or not (is_loopback(local) or _is_browser(headers)):
            return ""
        return f"unknown name {header[:100]!r} in the Host header (hint: use an IP address or set allow_host)"


def is_host_name(text: str) -> bool:
    """Return whether `text` is a syntactically valid host name."""
    return len(text) <= 253 and _NAME.fullmatch(_plain(text)) is not None


def _plain(name: str) -> str:
    return name.lower().removesuffix(".")


def _is_browser(headers: Mapping[bytes, bytes]) -> bool:
    return headers.get(b"user-agent", b"").startswith(b"Mozilla/") or any(name in headers for name in _BROWSER)


def write_refusal(
    peer: str, headers: Mapping[bytes, bytes], *, requires_credentials: bool, has_credentials: bool, known_host: bool
) -> str:
    """Return the reason why a request may not change the agent's state; "" if it may.

    peer                  the client's address.
    requires_credentials  whether the configuration requires a password or a certificate.
    has_credentials       whether the request carries valid credentials.
    known_host            whether the request's Host header contains an IP address or a name of this agent.
    """
    site = headers.get(b"sec-fetch-site", b"none").lower()
    if b"origin" in headers or site not in (b"none", b"same-origin"):
        return "changes from web pages are not allowed"
    if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
        return "a write needs a Content-Type: application/json header (hint: use curl --json)"
    if requires_credentials:
        return "" if has_credentials else "a write needs credentials"
    if not _is_on_this_machine(peer, headers):
        return "a write from another machine or a proxy needs credentials (hint: configure them in web_config_file)"
    if not known_host:
        return "the Host header does not name this agent (hint: use localhost or 127.0.0.1)"
    return ""


def read_refusal(
    path: str, peer: str, headers: Mapping[bytes, bytes], *, has_credentials: bool, anonymous_reads: bool
) -> str:
    """Return the reason why a request may not read what is at a path; "" if it may.

    Anyone who can reach the agent may read its metrics and whether it is healthy; only programs on the same machine
    and clients with credentials may read samples, recordings and runs, unless `anonymous_reads` is set.
    """
    if has_credentials or anonymous_reads or path in _PUBLIC or not path.startswith(_API):
        return ""
    if _is_on_this_machine(peer, headers):
        return ""
    hint = "configure passwords in web_config_file, or set allow_anonymous_reads"
    return f"recordings, samples and runs need credentials if the client is another machine or a proxy (hint: {hint})"


def _is_on_this_machine(peer: str, headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a program on this machine sent a request, as far as its headers tell."""
    return is_loopback(peer) and not any(name in headers for name in _FORWARDED)


def is_loopback(host: str) -> bool:
    """Return whether `host` is a loopback address; False for any name, even localhost."""
    address = ip_of(host)
    return address is not None and address.is_loopback


def ip_of(host: str) -> IPv4Address | IPv6Address | None:
    """Parse an IP address, and convert an IPv4-mapped IPv6 address to IPv4; return None for any other string."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


class BusyError(Exception):
    """Raised if too many password checks are waiting; the client should try again in a second."""


def credentials(header: bytes) -> tuple[str, bytes] | None:
    """Return the user name and password from an Authorization header, or None if it is not a valid Basic header."""
    scheme, _, rest = header.partition(b" ")
    if scheme.lower() != b"basic":
        return None
    with contextlib.suppress(binascii.Error, UnicodeDecodeError):
        name, colon, password = base64.b64decode(rest.strip(), validate=True).partition(b":")
        return (name.decode(), password) if colon else None
    return None


class Passwords:
    """Checks one password at a time in a low-priority thread, and caches the results.

    At most MAX_WAITING checks wait. A client whose password is in the cache is served at once, whatever others guess.
    """

    def __init__(self) -> None:
        # Cache keys are keyed digests, so neither a leaked cache nor the timing of a lookup reveals anything about
        # passwords.
        self._secret = os.urandom(32)
        self._known: dict[bytes, bool] = {}
        self._thread = ThreadPoolExecutor(1, "passwords", _give_way)
        self._turn = asyncio.Lock()
        self._checks: dict[bytes, asyncio.Task[bool]] = {}

    async def check(self, users: Mapping[str, str], name: str, password: bytes) -> bool:
        """Return whether the password is right; the check takes equally long for an unknown user. Raises BusyError."""
        hashed = users.get(name) or self._dummy_hash(users, name)
        key = self._digest(name.encode("utf-8", "replace"), hashed.encode(), password)
        is_right = self._known.get(key)
        if is_right is None:
            # Simultaneous requests with the same password share one check.
            check = self._checks.get(key)
            if check is None:
                if len(self._checks) > MAX_WAITING:
                    raise BusyError
                check = self._checks[key] = asyncio.create_task(self._checked(key, password, hashed))
            is_right = await asyncio.shield(check)
        return is_right and name in users

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _checked(self, key: bytes, password: bytes, hashed: str) -> bool:
        try:
            async with self._turn:
                loop = asyncio.get_running_loop()
                is_right = await loop.run_in_executor(self._thread, _is_right, password, hashed)
        finally:
            del self._checks[key]
        self._remember(key, is_right=is_right)
        return is_right

    def _remember(self, key: bytes, *, is_right: bool) -> None:
        self._known[key] = is_right
        while len(self._known) > REMEMBERED:
            # Wrong guesses must not evict valid passwords from the cache.
            wrong = next((key for key, right in self._known.items() if not right), None)
            self._known.pop(wrong or next(iter(self._known)))

    def _dummy_hash(self, users: Mapping[str, str], name: str) -> str:
        """Return a hash that no password matches, with the cost of one of the users' hashes."""
        hashes = sorted(users.values())
        which = int.from_bytes(self._digest(name.encode("utf-8", "replace"))[:8], "big") % len(hashes)
        return f"{hashes[which][:7]}{_SALT_AND_HASH}"

    def _digest(self, *parts: bytes) -> bytes:
        message = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        return hmac.new(self._secret, message, hashlib.sha256).digest()


def _is_right(password: bytes, hashed: str) -> bool:
    try:
        # Imported only when passwords are configured. checkpw compares in constant time.
        import bcrypt

        return bcrypt.checkpw(password[:MAX_BYTES], hashed.encode())
    except ValueError:
        return False


def _give_way() -> None:
    """Lower the priority of this thread: on Linux, niceness is per thread."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


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
