"""HTTP requests to a store, with a deadline and a response size limit; URL parameters configure TLS.

The store's own errors are distinguished from those of proxies and other servers: `influxdb` and `blueflood` return the
store's message about the points, or None if the body is not such a message.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timezone
from email.utils import parsedate_to_datetime
from typing import Any

from collector.http.access import HIDDEN, Access, AccessError, Reason, client_context
from collector.http.deadline_connection import DeadlineConnection, ExchangeError, Response
from collector.printable import one_line
from exporters.sinks.parts.sink_url import Target
from exporters.sinks.sink import RefusedError, SinkUrlError, TooLargeError, UnavailableError

CA, CERTIFICATE, KEY = TLS_PARAMETERS = ("ca_file", "cert_file", "key_file")
NAMES = {"ca": CA, "certificate": CERTIFICATE, "key": KEY}
HINTS = {
    Reason.UNKNOWN_AUTHORITY: f"specify the CA certificate with {CA}=PATH",
    Reason.PLAIN_HTTP: "use a URL with +http",
    Reason.CLIENT_CERTIFICATE_REQUIRED: f"use {CERTIFICATE}=PATH and {KEY}=PATH",
    Reason.CLIENT_CERTIFICATE_REJECTED: f"check {CERTIFICATE}",
}
MAX_RESPONSE_BYTES = 1 << 18
MAX_RETRY_AFTER_S = 300.0
# In the store's own responses, these statuses concern the points: some or all are invalid, or there are too many.
VERDICTS = (207, 400, 413, 422)
TOO_LARGE = 413
STORED = (200, 201, 204)
TAG = re.compile(r"<[^<>]*>")


@dataclass(frozen=True)
class StoreResponse:
    """A response; header names are in lower case, and `content` is the body as received."""

    status: int
    headers: Mapping[str, str]
    body: str
    content: bytes

    @classmethod
    def of(cls, response: Response) -> "StoreResponse":
        """Return a response with its body as text, in which invalid bytes are replaced."""
        return cls(response.status, response.headers, response.body.decode(errors="replace"), response.body)

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
    for secret in filter(None, secrets):
        text = text.replace(secret, HIDDEN)
    return text


class Store:
    """A connection to a store, which only one thread at a time may use."""

    def __init__(self, target: Target) -> None:
        """Read the certificate files without connecting. Raises SinkUrlError."""
        access = _access_of(target)
        try:
            tls = client_context(access) if target.tls else None
        except AccessError as error:
            raise SinkUrlError(error.message(NAMES)) from None
        self._connection = DeadlineConnection(target.host, target.port, tls, access)
        self._hint = access.hint

    def post(self, path: str, body: bytes, headers: Mapping[str, str], timeout_s: float) -> StoreResponse:
        """Send a POST request and return the response, whatever its status. Raises UnavailableError."""
        try:
            return StoreResponse.of(self._connection.post(path, body, headers, timeout_s, MAX_RESPONSE_BYTES))
        except ExchangeError as error:
            raise UnavailableError(error.failure.message(self._hint)) from None

    def close(self) -> None:
        self._connection.close()


def _access_of(target: Target) -> Access:
    """Return the certificate files for connections to a store, and the hints for failed ones. Raises SinkUrlError."""
    if not target.tls and (odd := [name for name in TLS_PARAMETERS if name in target.parameters]):
        raise SinkUrlError(f"{target.name}: {odd[0]} requires TLS (hint: use a URL with +https)")
    if KEY in target.parameters and CERTIFICATE not in target.parameters:
        raise SinkUrlError(f"{target.name}: {KEY} requires {CERTIFICATE}")
    ca, certificate, key = (target.file(name) if name in target.parameters else None for name in TLS_PARAMETERS)
    return Access(ca=ca, certificate=certificate, key=key, hint=lambda reason: HINTS.get(reason, ""))


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


# InfluxDB 2's error codes that concern the points; 1.8 and 3 have no codes.
CODES = frozenset({"invalid", "request too large", "too large", "unprocessable entity"})
VICTORIA_METRICS = re.compile(r'remoteAddr: "[^"]*"[^;]*; requestURI: [^;]*; (.*)', re.DOTALL)
# This message concerns the URL, not the points.
UNSUPPORTED = "unsupported path"
# How receivers of remote write and OTLP reject samples because of their times.
LATE = re.compile(r"out.of.order|too.old|out of bounds|too far in the (?:future|past)|duplicate.(?:sample|timestamp)")
BLUEFLOOD_TEXTS = ("Cannot parse content", "No valid metrics", "Invalid data", "Error converting JSON payload")


def influxdb(body: str) -> str | None:
    """Return the message of InfluxDB or VictoriaMetrics about the points, or None.

    InfluxDB 1.8, 3: {"error": "partial write: …"}
    InfluxDB 2: {"code": "invalid", "message": "…"}
    VictoriaMetrics: remoteAddr: "…"; requestURI: …; cannot read …
    """
    if match := VICTORIA_METRICS.match(body):
        return None if match[1].startswith(UNSUPPORTED) else match[1]
    response = _object(body)
    if response.get("code") in CODES:
        return _text(response, "message")
    return _text(response, "error") if response.keys() <= {"error", "data"} else None


def remote_write(body: str) -> str | None:
    """Return the message of a remote write receiver about the samples, which is plain text, or None.

    Other servers answer with HTML, JSON or nothing.
    """
    if match := VICTORIA_METRICS.match(body):
        return None if match[1].startswith(UNSUPPORTED) else match[1]
    text = body.strip()
    return None if not text or text.startswith(("<", "{")) else text


def blueflood(body: str) -> str | None:
    """Return Blueflood's message about the points, or None.

    The body is {"errors": [{"message": "…"}, …]} or, in older versions, a string with a prefix in BLUEFLOOD_TEXTS.
    """
    if body.startswith(BLUEFLOOD_TEXTS):
        return body
    errors = _object(body).get("errors")
    if isinstance(errors, list) and errors and isinstance(errors[0], dict):
        return _text(errors[0], "message")
    return None


def message(body: str) -> str:
    """Return the message in a JSON error, or the whole body if it is not a JSON error with a message."""
    response = _object(body)
    return _text(response, "message") or _text(response, "error") or body


def _object(body: str) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _text(response: dict[str, Any], name: str) -> str | None:
    value = response.get(name)
    return value if isinstance(value, str) and value else None
