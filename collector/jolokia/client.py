"""Jolokia, the bridge that speaks HTTP and JSON to the node's JMX: bytes out, answers in, errors typed.

One connection is kept alive; every call has a deadline for all of it, and a bound on the answer's size. Only
what was asked is believed: an answer of another shape is an error.
"""

import http.client
import json
import re
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from collector.http.deadline_connection import CHUNK_BYTES, BoundedConnection
from collector.http.failures import ConnectionClosedError, Failures
from collector.http.tls import client_context
from collector.jolokia.access import NO_ACCESS, Access, AccessError
from collector.jolokia.proxy_target import ProxyError, Target
from collector.model.snapshot import SourceError
from collector.printable import one_line

DEFAULT_PORTS = {"http": 8778, "https": 443}
DEFAULT_PATH = "/jolokia/"
EXAMPLE = "one looks like http://127.0.0.1:8778/jolokia"
MAX_ANSWER_BYTES = 16 << 20
# What the answers need not repeat; a missing attribute spoils its own value only. Unknown to old Jolokias: ignored.
OPTIONS = "?includeRequest=false&includeStackTrace=false&ignoreErrors=true"
HEADERS = {"Content-Type": "application/json", "User-Agent": "casstat"}

_PLAIN = re.compile(r"[!-~]+")


class JolokiaError(SourceError):
    """Jolokia did not answer as it should."""


class UrlError(ValueError):
    """The URL given for Jolokia cannot be one."""


class Jolokia:
    """One Jolokia agent, at a URL such as http://127.0.0.1:8778/jolokia."""

    def __init__(self, url: str, access: Access = NO_ACCESS) -> None:
        """Take `url` apart without connecting; a bare HOST or HOST:PORT will do.

        Raises UrlError, and AccessError when a file of `access` cannot be used or does not fit the URL.
        """
        if "@" in url:
            # It may be anything but right otherwise: what stands in it is not to be repeated.
            raise UrlError("a Jolokia URL holds no user and password: others on this machine could read them")
        shown = one_line(url)
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            host, port = parts.hostname, parts.port
        except ValueError:
            raise UrlError(f"'{shown}' is no URL: {EXAMPLE}") from None
        usable = parts.scheme in DEFAULT_PORTS and host and port != 0 and not parts.query and not parts.fragment
        if not usable or not _PLAIN.fullmatch(url):
            raise UrlError(f"'{shown}' is no Jolokia URL: {EXAMPLE}")
        self.host = host or ""
        self.port = port or DEFAULT_PORTS[parts.scheme]
        # As it will be asked: whoever gave a bare host reads in messages which port that meant.
        named = f"[{self.host}]" if ":" in self.host else self.host
        self.url = parts.geturl() if port else f"{parts.scheme}://{named}:{self.port}{parts.path or '/jolokia'}"
        if (access.ca or access.certificate) and parts.scheme != "https":
            raise AccessError(f"--jolokia-ca and --jolokia-cert are for TLS: give a URL with https://, not {self.url}")
        self._failures = Failures(self.host, parts.scheme == "https", access)
        self._tls = client_context(access) if parts.scheme == "https" else None
        self._headers = {**HEADERS, **access.headers}
        self._target = Target(access) if access.target else None
        self._answered = False
        self._path = (parts.path.rstrip("/") + "/" if parts.path.strip("/") else DEFAULT_PATH) + OPTIONS
        self._connection: BoundedConnection | None = None

    def ask(self, requests: Sequence[str], timeout_s: float) -> list[dict[str, Any]]:
        """Return Jolokia's answers to `requests` (each one JSON object), in their order, within `timeout_s`.

        An answer may be an error of its own (`status` other than 200). Raises JolokiaError when there is no
        usable answer as a whole.
        """
        deadline_s = time.monotonic() + timeout_s
        if self._target is None:
            return self._posted(requests, deadline_s)
        answers = self._posted(self._target.requests(requests), deadline_s)
        try:
            return self._target.answers(requests, answers)
        except ProxyError as error:
            said = self._failures.quoted(error.said)
            raise JolokiaError(f"{self.url}: {error.meaning}{said}{error.advice}") from None

    def _posted(self, requests: Sequence[str], deadline_s: float) -> list[dict[str, Any]]:
        body = f"[{','.join(requests)}]".encode()
        kept = self._connection is not None
        try:
            raw = self._exchange(body, deadline_s)
        except ConnectionClosedError:
            if not kept:
                raise JolokiaError(f"{self.url}: {self._failures.of_silence(answered=self._answered)}") from None
            # A kept connection may have been closed meanwhile, for example by a restart: once more on a new one.
            try:
                raw = self._exchange(body, deadline_s)
            except ConnectionClosedError:
                raise JolokiaError(f"{self.url}: {self._failures.of_silence(answered=self._answered)}") from None
        self._answered = True
        return self._answers(raw, len(requests))

    def close(self) -> None:
        """Give up the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(self, body: bytes, deadline_s: float) -> bytes:
        connection = self._connection
        if connection is not None and connection.has_news():
            # Nobody asked: it was closed, or an answer came twice. Neither may be taken for the next answer.
            self.close()
            connection = None
        connection = self._connection = connection or BoundedConnection(self.host, self.port, self._tls)
        connection.deadline_s = deadline_s
        whole = False
        try:
            connection.request("POST", self._path, body, self._headers)
            with connection.getresponse() as response:
                if response.status != http.client.OK:
                    raise JolokiaError(f"{self.url}: {self._failures.of_status(response)}")
                raw = self._read(response)
                whole = not response.will_close
            return raw
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            raise JolokiaError(f"{self.url}: {self._failures.of_error(error, greets=connection.greets)}") from None
        finally:
            if not whole:
                self.close()

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        parts, size = [], 0
        while chunk := response.read1(CHUNK_BYTES):
            parts.append(chunk)
            size += len(chunk)
            if size > MAX_ANSWER_BYTES or (response.length or 0) > MAX_ANSWER_BYTES:
                raise JolokiaError(f"{self.url}: the answer is larger than {MAX_ANSWER_BYTES >> 20} MiB")
        if response.length:
            raise JolokiaError(f"{self.url}: the answer broke off after {size} bytes")
        return b"".join(parts)

    def _answers(self, raw: bytes, expected: int) -> list[dict[str, Any]]:
        try:
            answers = json.loads(raw)
        except (ValueError, RecursionError):
            raise JolokiaError(f"{self.url}: the answer is no JSON: is this Jolokia?") from None
        if isinstance(answers, dict) and "error" in answers:
            why = "its policy refuses" if answers.get("status") == http.client.FORBIDDEN else "refused"
            raise JolokiaError(f"{self.url}: {why}: {self._failures.quoted(answers['error'])}")
        if (
            not isinstance(answers, list)
            or len(answers) != expected
            or not all(isinstance(answer, dict) for answer in answers)
        ):
            raise JolokiaError(f"{self.url}: the answer does not fit what was asked: is this Jolokia?")
        return answers
