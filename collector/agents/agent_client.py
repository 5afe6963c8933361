"""A blocking client for an agent's API, and a run that is active on several agents.

JSON responses and resumable downloads are bounded in size and time.
"""

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from math import inf
from typing import Any, BinaryIO

from collector.agents.addresses import LOCAL_HOST, NodeAddress
from collector.agents.agent_connection import AgentError
from collector.http.access import Access, Failure, Reason
from collector.http.deadline_connection import DeadlineConnection, ExchangeError, body_of, parts_of

# Maximum time for a JSON response, and between two parts of a download.
TIMEOUT_S = 10.0
MAX_JSON_BYTES = 16 << 20
# A file that is being written may have grown since the agent listed its size.
MAX_GROWTH_BYTES = 16 << 20
# A download takes at most MAX_START_S plus its size divided by MIN_BYTES_PER_S, plus the client's `patience_s`.
MAX_START_S, MIN_BYTES_PER_S = 60.0, 20_000.0
# A download fails after MAX_ATTEMPTS attempts that together received fewer than MIN_PROGRESS_BYTES, but only once
# `patience_s` has passed without progress.
MAX_ATTEMPTS = 5
MIN_PROGRESS_BYTES = 64 << 10
RETRY_DELAY_S = 1.0
# A lease outlasts several missed renewals, for example while an agent restarts.
LEASE_S, RENEW_EVERY_S = 60.0, 10.0
# The maximum number of agents that are sent requests at the same time.
MAX_PARALLEL = 16


class AgentUnavailableError(AgentError):
    """The agent could not be reached, or the connection broke; the request may be retried."""


class AgentStatusError(AgentError):
    """The agent responded with an HTTP error, whose code is `status`."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class ClientInterruptedError(Exception):
    """The client was interrupted; all further requests fail as well."""


@dataclass
class _Download:
    """The state of a download.

    deadline_s    the monotonic time at which the download fails.
    patience_s    how long to keep retrying without progress, even after MAX_ATTEMPTS.
    progressed_s  the monotonic time at which the last attempt with progress ended.
    tag           the ETag of the file.
    attempts      the number of attempts that failed since the file had `reached` bytes.
    """

    deadline_s: float
    patience_s: float
    progressed_s: float
    tag: str = ""
    attempts: int = 0
    reached: int = 0

    def may_continue(self, size_bytes: int) -> bool:
        """Count an attempt that failed when the file had `size_bytes`, and return whether to try again."""
        self.attempts += 1
        if size_bytes - self.reached >= MIN_PROGRESS_BYTES:
            self.attempts, self.reached, self.progressed_s = 1, size_bytes, time.monotonic()
        return self.attempts < MAX_ATTEMPTS or time.monotonic() - self.progressed_s < self.patience_s


class AgentClient:
    """A client for the agent at one address. It keeps one connection, and only one thread at a time may use it.

    Only `interrupt` may be called from any thread at any time.
    """

    def __init__(
        self, address: NodeAddress, access: Access, tls: ssl.SSLContext | None = None, patience_s: float = 0.0
    ) -> None:
        """Create the client without connecting.

        Requests without side effects are retried for up to `patience_s` while the agent cannot be reached.
        """
        self.address = address
        self._patience_s = patience_s
        self._headers = {**access.headers, "User-Agent": "casstat"}
        self._hint = access.hint
        self._interrupted = threading.Event()
        self._connection = _connection_to(address, access, tls)

    def json(self, path: str) -> Any:
        """Send a GET request and return the decoded JSON response. Raises AgentError and ClientInterruptedError."""
        ends_s = time.monotonic() + self._patience_s
        while True:
            is_reused = self._connection.is_open
            try:
                return self._json(path)
            except AgentUnavailableError:
                # The agent may have closed an idle connection while the request was on its way.
                if not is_reused:
                    if time.monotonic() >= ends_s:
                        raise
                    self._interrupted.wait(RETRY_DELAY_S)

    def post(self, path: str, content: Mapping[str, Any]) -> Any:
        """Send a POST request and return the decoded JSON response.

        Raises AgentError and ClientInterruptedError; the request may nevertheless have succeeded.
        """
        return self._json(path, json.dumps(content).encode())

    def download(
        self, path: str, size_bytes: int, file: BinaryIO, progress: Callable[[int], None] = lambda _: None
    ) -> None:
        """Download a file of about `size_bytes` to the empty file `file`; resume the download if a connection breaks.

        Calls `progress` with the number of bytes written; a negative number means that the agent has replaced the file,
        and these bytes are downloaded again. Raises AgentError, ClientInterruptedError, and OSError if `file` cannot be
        written.
        """
        now_s = time.monotonic()
        deadline_s = now_s + MAX_START_S + size_bytes / MIN_BYTES_PER_S + self._patience_s
        download = _Download(deadline_s, self._patience_s, now_s)
        while True:
            try:
                # If the file cannot be written, the connection is closed at once.
                with closing(self._parts(path, download, file.tell(), size_bytes + MAX_GROWTH_BYTES)) as parts:
                    for begin, part in parts:
                        if begin < (written := file.tell()):
                            file.seek(begin)
                            file.truncate()
                            progress(begin - written)
                            download.reached = 0
                        file.write(part)
                        progress(len(part))
                return
            except AgentUnavailableError:
                if time.monotonic() >= download.deadline_s:
                    raise AgentUnavailableError(self._text(Failure("download too slow", Reason.TIMED_OUT))) from None
                if not download.may_continue(file.tell()):
                    raise
                self._interrupted.wait(RETRY_DELAY_S)

    def _parts(
        self, path: str, download: _Download, begin: int, max_bytes: int
    ) -> Generator[tuple[int, bytes], None, None]:
        """Yield the parts of a file from `begin` on, or of all of it if the agent has replaced it, with their offsets.

        The first part is empty. Raises AgentError and ClientInterruptedError.
        """
        range_headers = {"Range": f"bytes={begin}-", "If-Range": download.tag} if download.tag else {}
        with self._response(path, range_headers, deadline_s=download.deadline_s) as response:
            if response.status == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and download.tag:
                return
            if response.status not in (http.client.OK, http.client.PARTIAL_CONTENT):
                raise self._status_error(response)
            download.tag = response.headers.get("ETag", "")
            offset = 0 if response.status == http.client.OK else begin
            yield offset, b""
            for part in parts_of(response):
                self.check()
                yield offset, part
                offset += len(part)
                self._connection.deadline_s = min(time.monotonic() + TIMEOUT_S, download.deadline_s)
                if offset > max_bytes:
                    raise AgentError(self._text(Failure("the file is larger than its listed size")))

    def interrupt(self) -> None:
        """Make the current request, and all later ones, raise ClientInterruptedError; may be called from any thread."""
        self._interrupted.set()
        self._connection.shut_down()

    def check(self) -> None:
        """Raise ClientInterruptedError if the client has been interrupted."""
        if self._interrupted.is_set():
            raise ClientInterruptedError

    def close(self) -> None:
        self._connection.close()

    def _json(self, path: str, body: bytes | None = None) -> Any:
        headers = {} if body is None else {"Content-Type": "application/json"}
        with self._response(path, headers, body) as response:
            if response.status not in (http.client.OK, http.client.CREATED):
                raise self._status_error(response)
            raw = body_of(response, MAX_JSON_BYTES)
        if len(raw) > MAX_JSON_BYTES:
            raise AgentError(self._text(Failure(f"response larger than {MAX_JSON_BYTES >> 20} MiB")))
        try:
            return json.loads(raw)
        except (ValueError, RecursionError):
            text = "the response is not JSON (hint: check the agent's address)"
            raise AgentError(self._text(Failure(text, Reason.UNEXPECTED_RESPONSE))) from None

    @contextmanager
    def _response(
        self, path: str, headers: Mapping[str, str], body: bytes | None = None, *, deadline_s: float = inf
    ) -> Iterator[http.client.HTTPResponse]:
        """Send a request and yield its response, which must begin within TIMEOUT_S and before `deadline_s`.

        Raises AgentUnavailableError and ClientInterruptedError, also within the `with` block.
        """
        self.check()
        begin_by_s = min(time.monotonic() + TIMEOUT_S, deadline_s)
        method, sent_headers = "GET" if body is None else "POST", {**self._headers, **headers}
        try:
            with self._connection.exchange(method, path, body, sent_headers, begin_by_s) as response:
                yield response
                self.check()
        except ExchangeError as error:
            self.check()
            raise AgentUnavailableError(self._text(error.failure)) from None

    def _status_error(self, response: http.client.HTTPResponse) -> AgentStatusError:
        return AgentStatusError(self._text(self._connection.diagnostics.of_response(response)), response.status)

    def _text(self, failure: Failure) -> str:
        return f"{self.address.url}: {failure.message(self._hint)}"


def _connection_to(address: NodeAddress, access: Access, tls: ssl.SSLContext | None) -> DeadlineConnection:
    if address.socket:
        return DeadlineConnection(LOCAL_HOST, None, None, access, unix_path=address.socket)
    return DeadlineConnection(address.host, address.port, tls if address.scheme == "https" else None, access)


class AgentRuns:
    """The same run on several agents. Agents that refuse to begin it are left out; the run goes on without them.

    An agent that fails later counts as silent: it receives no marks until it answers again, because each attempt may
    take a long time and would delay the marks for the other agents.
    """

    def __init__(self, clients: Sequence[AgentClient], report: Callable[[str], None]) -> None:
        """`report` receives a line for each agent that cannot begin, mark or end the run, or on which it ends early."""
        self._clients = list(clients)
        self._report = report
        self._ids: dict[AgentClient, str] = {}
        self._silent: set[AgentClient] = set()
        self._refusing: set[AgentClient] = set()
        # A client must be used by one thread at a time. The renewing thread uses the clients of silent agents, and the
        # thread that holds the lock uses the others.
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._renewing = threading.Thread(target=self._renew, name="lease", daemon=True)

    def begin(self, name: str) -> None:
        """Begin the run on all agents, and renew its leases until `end`."""

        def begin(client: AgentClient) -> str:
            content = client.post("/api/v1/runs", {"name": name, "lease_s": LEASE_S})
            self._ids[client] = str(content["id"])
            return ""

        with self._lock:
            self._for_each(self._clients, begin, "cannot begin the run")
        self._renewing.start()

    def mark(self, text: str) -> None:
        """Add a mark to the run on all agents that are answering.

        Of the marks that an agent refuses, only the first is reported: there may be room for a shorter one, and if the
        run has ended, the next renewal reports that.
        """
        problem = "cannot mark the run"

        def mark(client: AgentClient) -> str:
            try:
                client.post(f"/api/v1/runs/{self._ids[client]}/marks", {"text": text})
            except AgentStatusError as error:
                if error.status != http.client.CONFLICT:
                    raise
                is_first = client not in self._refusing
                self._refusing.add(client)
                return f"{problem}: {error}" if is_first else ""
            return ""

        with self._lock:
            self._for_each(self._answering(), mark, problem)

    def end(self) -> None:
        """End the run on all agents, and close the clients."""
        self._ended.set()
        if self._renewing.is_alive():
            self._renewing.join()
        problem = "cannot end the run, which stays active until its lease expires"
        with self._lock:
            self._for_each(list(self._ids), lambda client: self._change(client, "end"), problem)
        for client in self._clients:
            client.close()

    def _renew(self) -> None:
        while not self._ended.wait(RENEW_EVERY_S):
            # A failure is not reported, because the next renewal may succeed before the lease expires.
            silent = list(self._silent)
            with self._lock:
                self._for_each(self._answering(), lambda client: self._change(client, "lease"), "")
            self._for_each(silent, lambda client: self._change(client, "lease"), "")

    def _answering(self) -> list[AgentClient]:
        return [client for client in list(self._ids) if client not in self._silent]

    def _change(self, client: AgentClient, change: str) -> str:
        """Send a change that only an active run accepts; leave the agent out if the run has ended early on it."""
        try:
            client.post(f"/api/v1/runs/{self._ids[client]}/{change}", {})
        except AgentStatusError as error:
            if error.status not in (http.client.CONFLICT, http.client.NOT_FOUND):
                raise
            self._ids.pop(client, None)
            return f"the run ended early on {client.address.url}: its lease expired, or a client ended or deleted it"
        return ""

    def _for_each(self, clients: Sequence[AgentClient], act: Callable[[AgentClient], str], problem: str) -> None:
        """Call `act` for all clients in parallel, and report the texts that it returns.

        Reports a failure as `problem` with its reason, unless `problem` is empty.
        """

        def attempt(client: AgentClient) -> str:
            try:
                text = act(client)
            except AgentError as error:
                reason = str(error)
            except (KeyError, TypeError):
                reason = f"{client.address.url}: the response does not describe a run"
            else:
                self._silent.discard(client)
                return text
            self._silent.add(client)
            return f"{problem}: {reason}" if problem else ""

        if not clients:
            return
        with ThreadPoolExecutor(min(MAX_PARALLEL, len(clients))) as pool:
            for text in filter(None, pool.map(attempt, clients)):
                self._report(text)
