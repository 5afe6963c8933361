"""HTTP requests to a store, made with urllib3, with a deadline and a response size limit; redirects are not followed.

The deadline covers the whole request, even if bytes trickle in; only the system's name resolution is not bounded.
"""

import http.client
import io
import re
import socket
import ssl
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timezone
from email.utils import parsedate_to_datetime
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from collector.http.access import HIDDEN, Access
from collector.http.deadline_connection import DeadlineSocket
from collector.http.failures import connection_failure, timeout_failure, tls_failure
from collector.printable import one_line
from exporters.sinks.parts.store_responses import message
from exporters.sinks.sink import RefusedError, TooLargeError, UnavailableError

MAX_RESPONSE_BYTES = 1 << 18
MAX_RETRY_AFTER_S = 300.0
MAX_CAUSES = 8
# In the store's own responses, these statuses concern the points: some or all are invalid, or there are too many.
VERDICTS = (207, 400, 413, 422)
TOO_LARGE = 413
STORED = (200, 201, 204)
PROTOBUF = "application/x-protobuf"
TAG = re.compile(r"<[^<>]*>")
# Exceptions that urllib3 and http.client raise, including those caused by malformed responses.
FAILURES = (HTTPError, http.client.HTTPException, OSError, ValueError)


@dataclass(frozen=True)
class StoreResponse:
    """A response; header names are in lower case. `content` is the body as received, of a sink that needs it."""

    status: int
    headers: Mapping[str, str]
    body: str
    content: bytes = b""

    @property
    def text(self) -> str:
        """The body as one short line without HTML tags."""
        return one_line(TAG.sub(" ", message(self.body)[:1000]))

    @property
    def stored(self) -> bool:
        """Whether the store has stored the points; a successful response with a body comes from some other server."""
        return self.status in STORED and not self.body.strip()

    def without(self, *secrets: str) -> "StoreResponse":
        """Return the response with `secrets` masked in its body, but not in its content."""
        return replace(self, body=masked(self.body, secrets))

    @property
    def is_page(self) -> bool:
        """Whether the body is a page for people, which comes from some other server."""
        return self.body.lstrip().startswith("<")


def masked(text: str, secrets: Iterable[str]) -> str:
    """Return a text with `secrets` masked."""
    for secret in filter(None, secrets):
        text = text.replace(secret, HIDDEN)
    return text


class Pools(urllib3.PoolManager):
    """A pool with one persistent connection; influxdb_client uses it too, so that its requests have the same limits."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        options: dict[str, Any] = {} if tls is None else {"ssl_context": tls}
        super().__init__(num_pools=1, maxsize=1, retries=False, **options)
        self.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}

    def urlopen(self, method: str, url: str, *_redirect: bool, **options: Any) -> Any:  # type: ignore[override]
        """Send a request without following redirects."""
        return super().urlopen(method, url, **{**options, "redirect": False})


def post(pools: Pools, url: str, body: bytes, headers: Mapping[str, str], timeout_s: float) -> StoreResponse:
    """Send a POST request and return the response, whatever its status. Raises one of FAILURES."""
    timeout = urllib3.Timeout(total=timeout_s)
    response = pools.request("POST", url, body=body, headers=dict(headers), timeout=timeout)
    headers = {name.lower(): value for name, value in response.headers.items()}
    return StoreResponse(response.status, headers, response.data.decode(errors="replace"), response.data)


def response_error(
    response: StoreResponse, verdict: str | None, now_s: float, *, all_points: bool = False
) -> RefusedError | TooLargeError | UnavailableError:
    """Return the error for an unsuccessful response, given the store's own message about the points, if any."""
    if verdict is not None and response.status in VERDICTS:
        return RefusedError(one_line(f"HTTP {response.status}: {verdict}"), all_points=all_points)
    if response.status == TOO_LARGE:
        return TooLargeError(one_line(f"HTTP 413: the request is too large: {response.text}"))
    return unavailable(response, now_s)


def unavailable(response: StoreResponse, now_s: float) -> UnavailableError:
    """Return the error for a failure that the points did not cause, such as rejected credentials or a wrong path."""
    cause = {
        401: "HTTP 401: credentials missing or rejected (hint: check token_file)",
        403: "HTTP 403: no permission to write (hint: check token_file)",
        404: "HTTP 404: no such bucket, database or path",
        429: "HTTP 429: too many requests",
    }.get(response.status, f"HTTP {response.status}")
    if 300 <= response.status < 400:
        cause += ": redirect not followed (hint: use the final URL)"
    if response.status in VERDICTS or 200 <= response.status < 300:
        cause += ": the response is not from the store itself (hint: check the URL)"
    detail = f": {response.text}" if response.text else ""
    return UnavailableError(one_line(f"{cause}{detail}"), retry_after_s(response.headers.get("retry-after"), now_s))


def connection_error(error: Exception, host: str, access: Access) -> UnavailableError:
    """Convert one of FAILURES, raised by a request to `host` with `access`, to an UnavailableError."""
    causes = _causes(error)
    for cause in reversed(causes):
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, TimeoutError):
            return UnavailableError(tls_failure(cause, host, access.ca, access.certificate).message(access.hint))
        if isinstance(cause, socket.gaierror):
            return UnavailableError(one_line(f"cannot resolve the host name: {cause.strerror}"))
        if isinstance(cause, OSError) and not isinstance(cause, TimeoutError) and cause.strerror:
            return UnavailableError(connection_failure(cause).message(access.hint))
    if any(isinstance(cause, TimeoutError | urllib3.exceptions.TimeoutError) for cause in causes):
        return UnavailableError(timeout_failure().message(access.hint))
    if any(isinstance(cause, ConnectionError) for cause in causes):
        return UnavailableError("connection closed without a response")
    return UnavailableError(f"not an HTTP response ({type(causes[-1]).__name__})")


def _causes(error: BaseException) -> list[BaseException]:
    """Return an error and its causes, which urllib3 stores in several places."""
    causes = [error]
    while len(causes) < MAX_CAUSES:
        last = causes[-1]
        text = [getattr(last, "reason", None), last.__cause__, *last.args]
        cause = next((cause for cause in text if isinstance(cause, BaseException) and cause not in causes), None)
        if cause is None:
            break
        causes.append(cause)
    return causes


def retry_after_s(text: str | None, now_s: float) -> float | None:
    """Parse a Retry-After header into seconds, at most five minutes; None if it is missing or malformed."""
    if text is None or len(text) > 100:
        return None
    try:
        wait_s = float(text) if text.strip().isdigit() else _http_date_s(text) - now_s
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return min(max(wait_s, 0.0), MAX_RETRY_AFTER_S)


def _http_date_s(text: str) -> float:
    moment = parsedate_to_datetime(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()


class _Bounded:
    """Mixin for connections: setting the timeout sets the deadline for everything that follows."""

    sock: Any
    _deadline_s: float = 0.0
    _timeout: Any = None

    @property
    def timeout(self) -> Any:
        return self._timeout

    @timeout.setter
    def timeout(self, value: Any) -> None:
        self._timeout = value
        if isinstance(value, int | float):
            self._deadline_s = time.monotonic() + value

    def left_s(self) -> float:
        """Return the time left until the deadline. Raises TimeoutError if it has passed."""
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")
        return left_s


class _Plain(_Bounded, HTTPConnection):
    def connect(self) -> None:
        super().connect()
        self.sock = DeadlineSocket(self.sock, self)


class _Tls(_Bounded, HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        self.sock = DeadlineSocket(self.sock, self)


class _Reading:
    """Mixin for pools: reads responses completely, up to a size limit."""

    def urlopen(self, *arguments: Any, **options: Any) -> Any:
        options |= {"preload_content": False, "decode_content": False}
        response = super().urlopen(*arguments, **options)  # type: ignore[misc]
        try:
            body = response.read(MAX_RESPONSE_BYTES, decode_content=False)
        finally:
            # A connection with unread data cannot be reused.
            response.close() if response.length_remaining or not response.isclosed() else response.release_conn()
        # Replace invalid bytes, because influxdb_client decodes the body as UTF-8 without handling errors.
        is_protobuf = response.headers.get("Content-Type", "").startswith(PROTOBUF)
        text = body if is_protobuf else body.decode(errors="replace").encode()
        return urllib3.HTTPResponse(
            io.BytesIO(text), response.headers, response.status, enforce_content_length=False, decode_content=False
        )


class _Pool(_Reading, urllib3.HTTPConnectionPool):
    ConnectionCls = _Plain


class _TlsPool(_Reading, urllib3.HTTPSConnectionPool):
    ConnectionCls = _Tls
