"""A client for Jolokia, which exposes a node's JMX as JSON over HTTP, and its credentials.

One connection is kept alive. Every call has one deadline and a limit on the size of the response. A response with an
unexpected structure is an error.

An agent may run elsewhere and act as a proxy to the node's JMX. One that is not a proxy, such as the JVM agent of
version 1, silently reads its own JVM. Each POST to a proxy therefore also reads the JVM's identity, both with and
without the target; the responses are used only if the identities differ.
"""

import http.client
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from collector.http.access import Access, AccessError, CheckPeer, Failure, Reason, client_context
from collector.http.deadline_connection import DeadlineConnection, ExchangeError, body_of
from collector.model.snapshot import SourceError
from collector.printable import one_line

JMX_PORT = 7199

_HOST_PORT = re.compile(r"(?P<host>[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
_SERVICE_URL = re.compile(r"service:jmx:[!-~]+")


@dataclass(frozen=True)
class JolokiaAccess(Access):
    """Credentials for a Jolokia agent and for the node behind it.

    target           JMX address (HOST, HOST:PORT or service URL) of the node to read through a Jolokia proxy; ""
                     for the node that Jolokia runs in.
    target_user, target_password   credentials for the target's JMX.
    """

    target: str = ""
    target_user: str = ""
    target_password: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        """Raise AccessError if a field is invalid, or requires another field that is missing."""
        super().__post_init__()
        if (self.target_user or self.target_password) and not self.target:
            raise AccessError("JMX credentials require the node's JMX address", missing="target")
        if self.target_password and not self.target_user:
            raise AccessError("the JMX password requires a JMX user name", missing="target_user")
        if self.target:
            service_url(self.target)

    @property
    def _secrets(self) -> tuple[str, ...]:
        return (*super()._secrets, self.target_password)


NO_ACCESS = JolokiaAccess()
"""For a Jolokia agent that requires no credentials."""


def service_url(target: str) -> str:
    """Return the JMX service URL for `target` (HOST, HOST:PORT or a service URL). Raises AccessError."""
    if "@" in target:
        raise AccessError("the JMX address must not contain a user name and password", missing="target_user")
    if _SERVICE_URL.fullmatch(target):
        return target
    match = _HOST_PORT.fullmatch(target)
    port = int(match["port"] or JMX_PORT) if match else 0
    if match is None or not 0 < port < 1 << 16:
        raise AccessError("not a JMX address such as 10.0.0.7:7199", "target")
    return f"service:jmx:rmi:///jndi/rmi://{match['host']}:{port}/jmxrmi"


DEFAULT_PORTS = {"http": 8778, "https": 443}
DEFAULT_PATH = "/jolokia/"
EXAMPLE = "expected a URL such as http://127.0.0.1:8778/jolokia"
MAX_RESPONSE_BYTES = 16 << 20
# Responses should omit the requests and stack traces, and if one of several attributes is missing, they should still
# contain the others. Old versions of Jolokia ignore these options.
OPTIONS = "?includeRequest=false&includeStackTrace=false&ignoreErrors=true"
# A policy that refuses the requests of web pages (strict CORS checking) requires an origin that it allows. No web page
# has this one, because there is no top-level domain `invalid` (RFC 2606).
ORIGIN = "http://casstat.invalid"
HEADERS = {"Content-Type": "application/json", "User-Agent": "casstat", "Origin": ORIGIN}
RUNTIME = "java.lang:type=Runtime"
IDENTITY = json.dumps({"type": "read", "mbean": RUNTIME, "attribute": ["Name", "StartTime"]})
PROBE = json.dumps({"type": "search", "mbean": RUNTIME})
# A search through a Jolokia 2 proxy also returns names from the proxy's own JVM; the target's names have this prefix.
MARK = "proxy@"

_PLAIN = re.compile(r"[!-~]+")
Response = dict[str, Any]


class JolokiaError(SourceError):
    """Jolokia did not return a usable response; `reason` is the typed cause."""

    def __init__(self, message: str, reason: Reason = Reason.OTHER) -> None:
        super().__init__(message)
        self.reason = reason


class UrlError(ValueError):
    """The URL cannot be used for a Jolokia agent."""


class Jolokia:
    """A client for the Jolokia agent at one URL, such as http://127.0.0.1:8778/jolokia."""

    def __init__(self, url: str, access: JolokiaAccess = NO_ACCESS, check_peer: CheckPeer | None = None) -> None:
        """Parse `url` without connecting; HOST or HOST:PORT is enough.

        If `check_peer` returns a problem with the server, nothing is sent to it.

        Raises UrlError if the URL is unusable. Raises AccessError if a file in `access` cannot be used, or if `access`
        requires TLS but the URL is not https.
        """
        if "@" in url:
            # The message must not repeat the URL, which may contain a password.
            raise UrlError("the URL contains a user name and password, which other users of this host could read")
        shown = one_line(url)
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            host, port = parts.hostname, parts.port
        except ValueError:
            raise UrlError(f"'{shown}': {EXAMPLE}") from None
        usable = parts.scheme in DEFAULT_PORTS and host and port != 0 and not parts.query and not parts.fragment
        if not usable or not _PLAIN.fullmatch(url):
            raise UrlError(f"'{shown}': {EXAMPLE}")
        self.host = host or ""
        self.port = port or DEFAULT_PORTS[parts.scheme]
        # Messages show the port in use even if the given URL has none.
        shown_host = f"[{self.host}]" if ":" in self.host else self.host
        self.url = parts.geturl() if port else f"{parts.scheme}://{shown_host}:{self.port}{parts.path or '/jolokia'}"
        if (access.ca or access.certificate) and parts.scheme != "https":
            raise AccessError(f"TLS requires an https:// URL, not {self.url}", "ca" if access.ca else "certificate")
        self.has_credentials = bool(access.user or access.certificate)
        self._hint = access.hint
        tls = client_context(access) if parts.scheme == "https" else None
        self._connection = DeadlineConnection(self.host, self.port, tls, access, check_peer=check_peer)
        self._diagnostics = self._connection.diagnostics
        self._headers = {**HEADERS, **access.headers}
        self._target = ProxyTarget(access) if access.target else None
        self._path = (parts.path.rstrip("/") + "/" if parts.path.strip("/") else DEFAULT_PATH) + OPTIONS

    def post(self, requests: Sequence[str], timeout_s: float) -> list[Response]:
        """Return Jolokia's responses to `requests` (each a JSON object), in order, within `timeout_s`.

        An individual response may be an error (`status` other than 200). Raises JolokiaError if the whole POST fails.
        """
        deadline_s = time.monotonic() + timeout_s
        if self._target is None:
            return self._post(requests, deadline_s)
        proxy, target, *responses = self._post(self._target.requests(requests), deadline_s)
        if failure := self._target_failure(self._target.url, proxy, target):
            raise self._error(failure)
        return _of_target(requests, responses)

    def _target_failure(self, target_url: str, proxy: Response, target: Response) -> Failure | None:
        """Return why the target's responses cannot be used, given both JVMs' identities; None if they can."""
        if target.get("status") != 200:
            error = str(target.get("error") or "no reason given")
            text = f"cannot read {target_url}: {self._diagnostics.quoted(error)}"
            return Failure(text, _target_reason(error))
        if _identity(proxy) is None or _identity(target) is None:
            return Failure(f"cannot identify the JVM behind the proxy: the proxy's policy must allow reading {RUNTIME}")
        if _identity(proxy) == _identity(target):
            return Failure("not a proxy: it reports its own JVM", Reason.NOT_A_PROXY)
        return None

    def close(self) -> None:
        self._connection.close()

    def _error(self, failure: Failure) -> JolokiaError:
        return JolokiaError(f"{self.url}: {failure.message(self._hint)}", failure.reason)

    def _post(self, requests: Sequence[str], deadline_s: float) -> list[Response]:
        body = f"[{','.join(requests)}]".encode()
        is_reused = self._connection.is_open
        try:
            try:
                raw = self._exchange(body, deadline_s)
            except ExchangeError as error:
                if not (is_reused and error.is_closed):
                    raise
                # The server may have closed an idle connection, for example during a restart: retry once on a new one.
                raw = self._exchange(body, deadline_s)
        except ExchangeError as error:
            raise self._error(error.failure) from None
        return self._responses(raw, len(requests))

    def _exchange(self, body: bytes, deadline_s: float) -> bytes:
        """Return the body of the response to a request. Raises ExchangeError and JolokiaError."""
        with self._connection.exchange("POST", self._path, body, self._headers, deadline_s) as response:
            if response.status != http.client.OK:
                raise self._error(self._diagnostics.of_response(response))
            raw = body_of(response, MAX_RESPONSE_BYTES)
        if len(raw) > MAX_RESPONSE_BYTES:
            raise self._error(Failure(f"response larger than {MAX_RESPONSE_BYTES >> 20} MiB"))
        return raw

    def _responses(self, raw: bytes, expected: int) -> list[Response]:
        try:
            responses = json.loads(raw)
        except (ValueError, RecursionError):
            text = "the response is not JSON: is this Jolokia?"
            raise self._error(Failure(text, Reason.UNEXPECTED_RESPONSE)) from None
        if isinstance(responses, dict) and "error" in responses:
            is_forbidden = responses.get("status") == http.client.FORBIDDEN
            cause = "denied by Jolokia's policy" if is_forbidden else "refused"
            reason = Reason.FORBIDDEN if is_forbidden else Reason.OTHER
            raise self._error(Failure(f"{cause}: {self._diagnostics.quoted(responses['error'])}", reason))
        if (
            not isinstance(responses, list)
            or len(responses) != expected
            or not all(isinstance(response, dict) for response in responses)
        ):
            text = "the response does not match the request: is this Jolokia?"
            raise self._error(Failure(text, Reason.UNEXPECTED_RESPONSE))
        return responses


class ProxyTarget:
    """The node behind a proxy."""

    def __init__(self, access: JolokiaAccess) -> None:
        self.url = service_url(access.target)
        target = {"url": self.url}
        if access.target_user:
            target |= {"user": access.target_user, "password": access.target_password}
        self._suffix = f', "target": {json.dumps(target)}}}'

    def requests(self, requests: Sequence[str]) -> list[str]:
        """Return the requests to post to the proxy so that the target receives `requests` (each a JSON object).

        The first two identify the JVMs of the proxy and of the target.
        """
        checks = [IDENTITY, PROBE] if any(map(_is_search, requests)) else [IDENTITY]
        return [IDENTITY, *(request[:-1] + self._suffix for request in (*checks, *requests))]


def _is_search(request: str) -> bool:
    return '"type": "search"' in request


def _of_target(requests: Sequence[str], responses: Sequence[Response]) -> list[Response]:
    """Return the target's responses to `requests`, given the proxy's responses after the identities."""
    searches = [_is_search(request) for request in requests]
    if not any(searches):
        return list(responses)
    probe, *rest = responses
    if not _marked_names(probe):
        return rest
    return [
        {**response, "value": _marked_names(response)} if is_search and "value" in response else response
        for is_search, response in zip(searches, rest, strict=True)
    ]


def _identity(response: Response) -> tuple[str, int] | None:
    value = response.get("value")
    if response.get("status") != 200 or not isinstance(value, dict):
        return None
    name, start_ms = value.get("Name"), value.get("StartTime")
    return (name, start_ms) if isinstance(name, str) and isinstance(start_ms, int) else None


def _marked_names(response: Response) -> list[str]:
    """Return the names that begin with the prefix MARK, which are the target's, without that prefix."""
    names = response.get("value")
    if not isinstance(names, list):
        return []
    return [name[len(MARK) :] for name in names if isinstance(name, str) and name.startswith(MARK)]


def _target_reason(error: str) -> Reason:
    if "Authentication failed" in error or "Credentials" in error:
        return Reason.TARGET_CREDENTIALS
    if "not allowed by configuration" in error:
        return Reason.TARGET_FORBIDDEN
    return Reason.TARGET_UNREACHABLE
