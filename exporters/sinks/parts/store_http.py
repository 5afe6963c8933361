"""HTTP to a store through urllib3: requests end at their deadline, answers take little memory, nothing is followed.

The deadline is that of the whole request, however slowly bytes trickle in; to look up a name is the system's affair.
"""

import http.client
import io
import re
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timezone
from email.utils import parsedate_to_datetime
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from collector.http.deadline_connection import DeadlineSocket
from collector.http.failures import Hint, connection_failure, timeout_failure, tls_failure
from collector.printable import one_line
from exporters.sinks.parts.store_responses import message
from exporters.sinks.parts.store_tls import hint
from exporters.sinks.sink import RefusedError, TooLargeError, UnavailableError

LARGEST_ANSWER_BYTES = 1 << 18
LONGEST_REST_S = 300.0
FURTHEST = 8
# Where the store itself answers so, it is about the points: some of them are wrong (207), all of them, or too many.
VERDICTS = (207, 400, 413, 422)
TOO_LARGE = 413
STORED = (200, 201, 204)
TAG = re.compile(r"<[^<>]*>")
# What urllib3 and http.client raise, and what nonsense in an answer leads to.
FAILURES = (HTTPError, http.client.HTTPException, OSError, ValueError)


@dataclass(frozen=True)
class Answer:
    """An answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def text(self) -> str:
        """The body for people: one line, not long, without the tags of HTML."""
        return one_line(TAG.sub(" ", message(self.body)[:1000]))

    @property
    def stored(self) -> bool:
        """Whether the points are stored; an answer with a body is not the store's."""
        return self.status in STORED and not self.body.strip()

    def without(self, secret: str) -> "Answer":
        """Return the same without a secret that it repeats."""
        return replace(self, body=self.body.replace(secret, "***")) if secret else self


class Pools(urllib3.PoolManager):
    """One connection, that is kept while the store keeps it. Set as `pool_manager` it bounds influxdb_client too."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        choices: dict[str, Any] = {} if tls is None else {"ssl_context": tls}
        super().__init__(num_pools=1, maxsize=1, retries=False, **choices)
        self.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}

    def urlopen(self, method: str, url: str, *_redirect: bool, **choices: Any) -> Any:  # type: ignore[override]
        """Ask, and follow nothing."""
        return super().urlopen(method, url, **{**choices, "redirect": False})


def post(pools: Pools, url: str, body: bytes, headers: Mapping[str, str], timeout_s: float) -> Answer:
    """Post and return the answer, whatever it is. Raises one of FAILURES."""
    timeout = urllib3.Timeout(total=timeout_s)
    response = pools.request("POST", url, body=body, headers=dict(headers), timeout=timeout)
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(response.status, headers, response.data.decode(errors="replace"))


def judged(
    answer: Answer, verdict: str | None, now_s: float, *, every: bool = False
) -> RefusedError | TooLargeError | UnavailableError:
    """Return what an answer other than success means, given the store's own verdict on the points, if it is one."""
    if verdict is not None and answer.status in VERDICTS:
        return RefusedError(one_line(f"HTTP {answer.status}: {verdict}"), every=every)
    if answer.status == TOO_LARGE:
        return TooLargeError(one_line(f"HTTP 413: the request is too large: {answer.text}"))
    return unavailable(answer, now_s)


def unavailable(answer: Answer, now_s: float) -> UnavailableError:
    """Return what an answer means that is neither success nor the store's word on the points."""
    said = {
        401: "HTTP 401: it wants other credentials: see token_file",
        403: "HTTP 403: these credentials may not write there: see token_file",
        404: "HTTP 404: it has no such bucket, database or path",
        429: "HTTP 429: it has too much to do",
    }.get(answer.status, f"HTTP {answer.status}")
    if 300 <= answer.status < 400:
        said += ": it points elsewhere: give the final URL"
    if answer.status in (*VERDICTS, *STORED):
        said += " from something that is not the store: check the URL"
    text = f": {answer.text}" if answer.text else ""
    return UnavailableError(one_line(f"{said}{text}"), retry_after_s(answer.headers.get("retry-after"), now_s))


def failed(error: Exception, host: str, advice: Hint = hint) -> UnavailableError:
    """Return the error for one of FAILURES; `advice` is the hint for its reason."""
    causes = _causes(error)
    for cause in reversed(causes):
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, TimeoutError):
            return UnavailableError(tls_failure(cause, host).message(advice))
        if isinstance(cause, socket.gaierror):
            return UnavailableError(one_line(f"unknown host name: {cause.strerror}"))
        if isinstance(cause, OSError) and not isinstance(cause, TimeoutError) and cause.strerror:
            return UnavailableError(connection_failure(cause).message(advice))
    if any(isinstance(cause, TimeoutError | urllib3.exceptions.TimeoutError) for cause in causes):
        return UnavailableError(timeout_failure().message(advice))
    if any(isinstance(cause, ConnectionError) for cause in causes):
        return UnavailableError("connection closed without an answer")
    return UnavailableError(f"not an HTTP answer ({type(causes[-1]).__name__})")


def _causes(error: BaseException) -> list[BaseException]:
    """Return an error and what it says that it comes from: urllib3 wraps errors in several ways."""
    found = [error]
    while len(found) < FURTHEST:
        last = found[-1]
        said = [getattr(last, "reason", None), last.__cause__, *last.args]
        cause = next((each for each in said if isinstance(each, BaseException) and each not in found), None)
        if cause is None:
            break
        found.append(cause)
    return found


def retry_after_s(said: str | None, now_s: float) -> float | None:
    """Return how long a store asks to be left alone, at most a few minutes; None when it says nothing sensible."""
    if said is None or len(said) > 100:
        return None
    try:
        wait_s = float(said) if said.strip().isdigit() else _moment_s(said) - now_s
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return min(max(wait_s, 0.0), LONGEST_REST_S)


def _moment_s(said: str) -> float:
    moment = parsedate_to_datetime(said)
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()


class _Bounded:
    """Of a connection: whoever sets its timeout sets the deadline of all that follows."""

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
        """Return the time that is left. Raises TimeoutError when there is none."""
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
    """Of a pool: an answer is read whole, but not more of it than any store has to say."""

    def urlopen(self, *arguments: Any, **choices: Any) -> Any:
        choices |= {"preload_content": False, "decode_content": False}
        response = super().urlopen(*arguments, **choices)  # type: ignore[misc]
        try:
            body = response.read(LARGEST_ANSWER_BYTES, decode_content=False)
        finally:
            # What is not read to its end is not used again.
            response.close() if response.length_remaining or not response.isclosed() else response.release_conn()
        # influxdb_client takes it for UTF-8, whatever it is.
        text = body.decode(errors="replace").encode()
        return urllib3.HTTPResponse(
            io.BytesIO(text), response.headers, response.status, enforce_content_length=False, decode_content=False
        )


class _Pool(_Reading, urllib3.HTTPConnectionPool):
    ConnectionCls = _Plain


class _TlsPool(_Reading, urllib3.HTTPSConnectionPool):
    ConnectionCls = _Tls
