"""Boards brought to a Grafana by its HTTP API: into a folder of their own, in place of what is there."""

import base64
import json
import ssl
from collections.abc import Iterable
from urllib.parse import urlsplit

from collector.printable import one_line
from exporters.sinks.parts.store_http import FAILURES, Answer, Pools, failed, post

FOLDER = "casstat"
# Grafana's words for a folder that is there already.
THERE = (409, 412)
TIMEOUT_S = 10.0


class GrafanaError(Exception):
    """A Grafana did not take what it was sent; the message says why and what to do, in one line, without secrets."""


class Grafana:
    """A Grafana at a URL, which may have a path. Nothing is asked of it but in `push`."""

    def __init__(self, url: str, secret: str, tls: ssl.SSLContext | None, timeout_s: float = TIMEOUT_S) -> None:
        """Take where it is, and a token or `user:password`. Raises GrafanaError for a URL that is none."""
        self._url = _checked(url)
        self._host = urlsplit(self._url).hostname or ""
        self._secret = secret
        self._headers = {"Authorization": _authorization(secret), "Content-Type": "application/json"}
        self._pools = Pools(tls if self._url.startswith("https") else None)
        self._timeout_s = timeout_s

    def push(self, boards: Iterable[str]) -> list[str]:
        """Send boards, each as JSON, and return their addresses. Raises GrafanaError; those before it stay there."""
        self._ask("/api/folders", {"uid": FOLDER, "title": FOLDER}, allowed=THERE)
        return [self._board(board) for board in boards]

    def close(self) -> None:
        """Close the connection."""
        self._pools.clear()

    def _board(self, text: str) -> str:
        board = json.loads(text)
        sent = {"dashboard": {**board, "id": None}, "folderUid": FOLDER, "overwrite": True, "message": "casstat"}
        self._ask("/api/dashboards/db", sent)
        return f"{self._url}/d/{board['uid']}"

    def _ask(self, path: str, body: object, allowed: tuple[int, ...] = ()) -> None:
        try:
            answer = post(self._pools, self._url + path, json.dumps(body).encode(), self._headers, self._timeout_s)
        except FAILURES as error:
            raise GrafanaError(f"{self._url}: {_hint(str(failed(error, self._host)))}") from None
        if answer.status != 200 and answer.status not in allowed:
            raise GrafanaError(f"{self._url}: {self._why(answer)}")

    def _why(self, answer: Answer) -> str:
        said = {
            401: "it does not take this token or password: see --token-file",
            403: "this token or user may not write dashboards: it needs the role Editor",
            404: "no Grafana at this URL: give the one that its pages begin with",
            412: "it refuses to replace a dashboard that comes from a file: remove that file, or change it there",
        }.get(answer.status, "it does not take the dashboards")
        if 300 <= answer.status < 400:
            said = "it points elsewhere: give the final URL"
        text = answer.text.replace(self._secret, "***") if self._secret else answer.text
        return one_line(f"HTTP {answer.status}: {said}{f' ({text})' if text else ''}")


def _hint(why: str) -> str:
    """Return what went wrong in the words of this command's options."""
    return why.replace("ca_file=PATH", "--ca FILE").replace("+http", "http://")


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise GrafanaError("the URL is none: it is http://HOST:3000 or https://HOST") from None
    if "@" in parts.netloc:
        raise GrafanaError("no user and password in a URL: others can read it; give --token-file")
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise GrafanaError("the URL is none: it is http://HOST:3000 or https://HOST")
    if parts.query or parts.fragment:
        raise GrafanaError("the URL has a '?' or a '#': give the one that Grafana's pages begin with")
    return url.rstrip("/")


def _authorization(secret: str) -> str:
    if ":" in secret:
        return f"Basic {base64.b64encode(secret.encode()).decode()}"
    return f"Bearer {secret}"
