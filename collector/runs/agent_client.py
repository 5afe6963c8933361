"""A blocking client for an agent's API: JSON responses and resumable downloads, bounded in size and time."""

import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

from collector.cluster.live.agent_connection import AgentError
from collector.cluster.live.node_address import NodeAddress
from collector.http.access import Access
from collector.http.deadline_connection import CHUNK_BYTES, DeadlineConnection
from collector.http.diagnostics import ConnectionClosedError, Diagnostics
from collector.http.failures import Failure, Reason

# Maximum time for a response, and between two parts of a download.
TIMEOUT_S = 10.0
MAX_JSON_BYTES = 16 << 20
# A request fails after this many attempts without progress.
MAX_ATTEMPTS = 5
RETRY_DELAY_S = 1.0


class AgentUnavailableError(AgentError):
    """The agent could not be reached, or the connection broke; the request may be sent again."""


class _WriteError(Exception):
    """Writing a downloaded file failed with `error`."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class AgentClient:
    """A client for the agent at one address. It keeps one connection and must be used by one thread at a time."""

    def __init__(
        self,
        address: NodeAddress,
        access: Access,
        tls: ssl.SSLContext | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """Create the client without connecting; `wait` pauses between attempts to download."""
        self.address = address
        self._tls = tls if address.scheme == "https" else None
        self._headers = {**access.headers, "User-Agent": "casstat"}
        self._hint = access.hint
        self._diagnostics = Diagnostics(address.host, address.scheme == "https", access)
        self._wait = wait
        self._connection: DeadlineConnection | None = None
        self._answered = False

    def json(self, path: str) -> Any:
        """Return the content of a JSON response to GET. Raises AgentError."""
        is_reused = self._connection is not None
        try:
            return self._json(path)
        except AgentUnavailableError:
            if not is_reused:
                raise
            # The agent may have closed an idle connection.
            return self._json(path)

    def post(self, path: str, content: Mapping[str, Any]) -> Any:
        """Return the content of a JSON response to POST. Raises AgentError; the request may nevertheless have succeeded."""
        return self._json(path, json.dumps(content).encode())

    def download(self, path: str, file: BinaryIO, progress: Callable[[int], None] = lambda _: None) -> None:
        """Write a file of the agent to the empty file `file`; continue after a broken connection.

        Calls `progress` with the number of bytes written; a negative number means that they are downloaded again,
        because the agent has replaced the file. Raises AgentError, and OSError if `file` cannot be written.
        """
        tag, attempts = "", 0
        while True:
            begin = file.tell()
            range_headers = {"Range": f"bytes={begin}-", "If-Range": tag} if tag else {}
            try:
                with self._response(path, range_headers) as response:
                    if response.status == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and tag:
                        return
                    if response.status not in (http.client.OK, http.client.PARTIAL_CONTENT):
                        raise self._status_error(response)
                    if response.status == http.client.OK and begin:
                        file.seek(0)
                        file.truncate()
                        progress(-begin)
                    tag = response.headers.get("ETag", "")
                    for chunk in self._body(response):
                        _write(file, chunk)
                        progress(len(chunk))
                return
            except _WriteError as failed:
                raise failed.error from None
            except AgentUnavailableError:
                attempts = 1 if file.tell() > begin else attempts + 1
                if attempts >= MAX_ATTEMPTS:
                    raise
                self._wait(RETRY_DELAY_S)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _json(self, path: str, body: bytes | None = None) -> Any:
        headers = {} if body is None else {"Content-Type": "application/json"}
        with self._response(path, headers, body) as response:
            if response.status not in (http.client.OK, http.client.CREATED):
                raise self._status_error(response)
            raw = bytearray()
            for chunk in self._body(response):
                raw += chunk
                if len(raw) > MAX_JSON_BYTES:
                    raise AgentError(self._text(Failure(f"response larger than {MAX_JSON_BYTES >> 20} MiB")))
        try:
            return json.loads(raw)
        except (ValueError, RecursionError):
            text = "the response is not JSON (hint: check the agent's address)"
            raise AgentError(self._text(Failure(text, Reason.UNEXPECTED_RESPONSE))) from None

    @contextmanager
    def _response(
        self, path: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        """Send a request and yield its response. Raises AgentUnavailableError, also within the `with` block."""
        connection = self._connection or DeadlineConnection(self.address.host, self.address.port, self._tls)
        self._connection = connection
        connection.deadline_s = time.monotonic() + TIMEOUT_S
        is_reusable = False
        try:
            connection.request("GET" if body is None else "POST", path, body, {**self._headers, **headers})
            with connection.getresponse() as response:
                self._answered = True
                yield response
                is_reusable = response.isclosed() and not response.will_close
        except (http.client.HTTPException, OSError, UnicodeError) as error:
            try:
                failure = self._diagnostics.of_error(error, handshaking=connection.is_handshaking)
            except ConnectionClosedError:
                failure = self._diagnostics.of_closed_connection(answered=self._answered)
            raise AgentUnavailableError(self._text(failure)) from None
        finally:
            if not is_reusable:
                self.close()

    def _body(self, response: http.client.HTTPResponse) -> Iterator[bytes]:
        """Yield a response's body. The deadline applies to each part, so a large body may take long."""
        while chunk := response.read1(CHUNK_BYTES):
            yield chunk
            if self._connection is not None:
                self._connection.deadline_s = time.monotonic() + TIMEOUT_S
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)

    def _status_error(self, response: http.client.HTTPResponse) -> AgentError:
        location = response.headers.get("Location")
        return AgentError(self._text(self._diagnostics.of_status(response.status, response.reason, location)))

    def _text(self, failure: Failure) -> str:
        return f"{self.address.url}: {failure.message(self._hint)}"


def _write(file: BinaryIO, chunk: bytes) -> None:
    """Write to a file; its errors must not be mistaken for those of the connection. Raises _WriteError."""
    try:
        file.write(chunk)
    except OSError as error:
        raise _WriteError(error) from None
