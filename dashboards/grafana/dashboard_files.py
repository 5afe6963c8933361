"""The packaged dashboard files, Grafana's provisioning file for them, and their upload through Grafana's HTTP API."""

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files as package_files
from pathlib import Path
from urllib.parse import quote, urlsplit

import dashboards
from collector.http.access import HIDDEN, Access, Reason, client_context
from collector.http.deadline_connection import DeadlineConnection, ExchangeError
from collector.printable import one_line
from exporters.sinks.parts.store_http import MAX_RESPONSE_BYTES, StoreResponse

STORES = ("prometheus", "influxdb")
DEFAULT_FOLDER = "/var/lib/grafana/dashboards/casstat"
"""The dashboard directory named in the packaged provisioning file."""
FOLDER = "casstat"
# The statuses that Grafana returns if the folder already exists.
FOLDER_EXISTS = (409, 412)
TIMEOUT_S = 10.0


def packaged_dashboards(store: str) -> Iterator[tuple[str, str]]:
    """Yield the file name and text of every dashboard for `store`, which is one of STORES."""
    folder = package_files(dashboards) / "grafana" / "json" / store
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        yield file.name, file.read_text(encoding="utf-8")


def provider(folders: Sequence[Path]) -> str:
    """Return the text of a provisioning file that makes Grafana load the dashboards in these directories."""
    text = (package_files(dashboards) / "provisioning" / "dashboards" / "casstat.yaml").read_text(encoding="utf-8")
    head, template = text.split("providers:\n")
    # JSON strings are valid YAML. Grafana requires each provider to have a distinct name.
    providers = [
        template.replace(DEFAULT_FOLDER, json.dumps(str(folder))).replace(
            "name: casstat", f"name: {json.dumps(folder.name)}"
        )
        for folder in folders
    ]
    return f"{head}providers:\n{''.join(providers)}"


class GrafanaError(Exception):
    """Raised if a Grafana request fails; the message is one line with the cause, and contains no secrets."""


class Grafana:
    """A client for a Grafana server; only `push` sends requests."""

    def __init__(self, url: str, secret: str, ca: Path | None) -> None:
        """Create a client; `secret` is a token or `user:password`, and `ca` is a PEM file of CAs to trust, if any.

        Raises GrafanaError if the URL is invalid, and AccessError if `ca` is.
        """
        self._url = _checked_url(url)
        self._secret = secret
        self._headers = {"Authorization": _authorization(secret), "Content-Type": "application/json"}
        parts, access = urlsplit(self._url), Access(ca=ca, hint=_hint)
        tls = client_context(access)
        self._connection = DeadlineConnection(
            parts.hostname or "", parts.port, tls if parts.scheme == "https" else None, access
        )
        self._path = quote(parts.path, safe="/%")

    def push(self, dashboards: Iterable[str]) -> list[str]:
        """Upload dashboards, given as JSON, to the "casstat" folder, and return their URLs.

        Raises GrafanaError on the first failure; dashboards that were uploaded before it are kept.
        """
        self._post("/api/folders", {"uid": FOLDER, "title": FOLDER}, allowed=FOLDER_EXISTS)
        return [self._upload(dashboard) for dashboard in dashboards]

    def close(self) -> None:
        self._connection.close()

    def _upload(self, text: str) -> str:
        dashboard = json.loads(text)
        body = {"dashboard": {**dashboard, "id": None}, "folderUid": FOLDER, "overwrite": True, "message": "casstat"}
        self._post("/api/dashboards/db", body)
        return f"{self._url}/d/{dashboard['uid']}"

    def _post(self, path: str, body: object, allowed: tuple[int, ...] = ()) -> None:
        content = json.dumps(body).encode()
        try:
            answer = StoreResponse.of(
                self._connection.post(self._path + path, content, self._headers, TIMEOUT_S, MAX_RESPONSE_BYTES)
            )
        except ExchangeError as error:
            raise GrafanaError(f"{self._url}: {error.failure.message(_hint)}") from None
        if answer.status != 200 and answer.status not in allowed:
            raise GrafanaError(f"{self._url}: {self._refusal(answer)}")

    def _refusal(self, answer: StoreResponse) -> str:
        reason = {
            401: "invalid token or password (hint: check --token-file)",
            403: "no permission to write dashboards (hint: give the token or user the Editor role)",
            404: "no Grafana API at this URL (hint: pass the URL of Grafana's home page)",
            412: "provisioned from a file or conflicting with another dashboard (hint: remove that file or dashboard)",
        }.get(answer.status, "request not accepted")
        if 300 <= answer.status < 400:
            reason = "redirected (hint: pass the final URL)"
        text = answer.text.replace(self._secret, HIDDEN) if self._secret else answer.text
        return one_line(f"HTTP {answer.status}: {reason}{f' ({text})' if text else ''}")


def _hint(reason: Reason) -> str:
    """Return the hint for a failed connection to Grafana, or ""."""
    return {
        Reason.UNKNOWN_AUTHORITY: "specify the CA certificate with --ca FILE",
        Reason.PLAIN_HTTP: "use an http:// URL",
    }.get(reason, "")


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
        (parts.hostname or "").encode("idna")
    except ValueError:
        raise GrafanaError("invalid URL (hint: pass http://HOST:3000 or https://HOST)") from None
    if "@" in parts.netloc:
        raise GrafanaError(
            "the URL contains a user name and password, which other users can see (hint: use --token-file)"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise GrafanaError("invalid URL (hint: pass http://HOST:3000 or https://HOST)")
    if parts.query or parts.fragment:
        raise GrafanaError("the URL contains '?' or '#' (hint: use the URL of Grafana's home page)")
    return url.rstrip("/")


def _authorization(secret: str) -> str:
    if ":" in secret:
        return f"Basic {base64.b64encode(secret.encode()).decode()}"
    return f"Bearer {secret}"
