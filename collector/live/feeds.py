"""Follows a node through its agent or its Jolokia.

From an agent, the last sample is read and each new one is received; after a failure, the connection is made again.
Sampling through Jolokia runs in a thread because reads may block.
"""

import asyncio
import errno
import json
import os
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, suppress
from typing import Any, Protocol
from urllib.parse import urlencode

from collector.agents.addresses import LOCAL_HOST, NodeAddress
from collector.agents.agent_connection import OK, AgentConnection, AgentError, EventHandler
from collector.http.access import CLOSED, Access, Diagnostics, UntrustedServerError
from collector.http.deadline_connection import Response
from collector.live.cluster_interval import NodeInfo, dc_rack
from collector.model.clock import SystemClock, ticks
from collector.model.sample_json import MalformedSampleError, decoded
from collector.model.snapshot import IDENTITY_LABELS, Identity, Placement, Sample, Snapshot, SourceError, Tick
from collector.node.catalogue import BEANS
from collector.node.host.host_source import identity_of
from collector.node.jolokia.client import Jolokia
from collector.node.jolokia.mbean_source import MBeanSource
from collector.node.node_sampler import NameOverrides, NodeSampler
from collector.node.selection import DEFAULT_TABLES, Selection
from collector.printable import one_line

CONNECT_TIMEOUT_S = 3.0
MIN_DELAY_S, MAX_DELAY_S = 0.5, 5.0
# A connection that has lasted longer than STEADY_S resets the backoff.
STEADY_S = 10.0
NOT_FOUND, UNAUTHORIZED = 404, 401
JSON, EVENTS = "application/json", "text/event-stream"
MAX_PEERS, MAX_ADDRESS_CHARS = 2000, 64
# The exceptions that a failed connection or a malformed response may raise; any other exception is a bug.
EXPECTED = (AgentError, OSError, MalformedSampleError, TimeoutError, asyncio.TimeoutError)


class FeedListener(Protocol):
    """Receives samples, properties and failures from feeds, which may run in any thread; `key` identifies the node."""

    def on_sample(self, key: str, sample: Sample, *, is_last: bool = False) -> None:
        """Receive a sample; `is_last` marks the agent's latest sample from before the connection was made."""

    def on_node(self, key: str, info: NodeInfo, address: str, peers: Sequence[str]) -> None:
        """Receive the node's properties, its own address, and the addresses of all nodes in its cluster."""

    def on_failure(self, key: str, reason: str) -> None:
        """Receive the reason why the node or its agent is not answering."""


class AgentFeed:
    """Follows one agent until cancelled.

    connections  the set of open connections, shared with the feed's owner, which checks their deadlines.
    """

    def __init__(
        self,
        key: str,
        address: NodeAddress,
        access: Access,
        tls: ssl.SSLContext | None,
        listener: FeedListener,
        connections: set[AgentConnection],
    ) -> None:
        self._key = key
        self._address = address
        self._tls = tls
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in access.headers.items())
        self._hint = access.hint
        self._check_peer = access.check_peer
        self._diagnostics = Diagnostics(address.host, address.scheme == "https", access)
        self._listener = listener
        self._connections = connections
        self._selectors: Sequence[str] = ()
        self._last_s: float | None = None
        self._event_stream: AgentConnection | None = None
        self._delay_s = MIN_DELAY_S
        self._request_changed = False
        self._is_introduced = False
        self._ever_answered = False

    def request(self, selectors: Sequence[str]) -> None:
        """From now on, request the series that match these selectors; if they have changed, reconnect."""
        if selectors != self._selectors:
            self._selectors = selectors
            self._request_changed = True
            if self._event_stream is not None:
                self._event_stream.fail(AgentError("the request changed"))

    async def follow(self) -> None:
        """Connect, and reconnect with backoff, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._request_changed = False
            began_s = loop.time()
            try:
                await self._session()
            except EXPECTED as error:
                if self._request_changed:
                    continue
                self._listener.on_failure(self._key, self._failure_reason(error))
            except Exception as error:
                # Report the error, because the task must not end silently.
                self._listener.on_failure(self._key, unexpected_text(error))
            # After reconnecting, a different node may be answering at this address.
            self._is_introduced = False
            if loop.time() - began_s > STEADY_S:
                self._delay_s = MIN_DELAY_S
            await asyncio.sleep(self._delay_s)
            self._delay_s = min(2 * self._delay_s, MAX_DELAY_S)

    async def refresh_node(self) -> None:
        """Read the node's properties and peers again; failed connections and malformed responses are ignored."""
        try:
            async with self._connection() as connection:
                await self._read_node(connection)
        except EXPECTED:
            return
        except Exception as error:
            # Report the error, because the caller's task must not end silently.
            self._listener.on_failure(self._key, unexpected_text(error))

    async def _session(self) -> None:
        if not self._is_introduced:
            await self._introduce()
        # An event stream occupies its connection until the stream ends, so it gets a connection of its own.
        async with self._connection() as connection:
            self._event_stream = connection
            try:
                response = await self._get(connection, self._samples_path(self._last_s), EVENTS, self._take_event)
                if response.status != OK or not response.headers.get("content-type", "").startswith(EVENTS):
                    raise AgentError(self._refusal(response))
                await connection.closed
                raise connection.failure or ConnectionResetError()
            finally:
                self._event_stream = None

    async def _introduce(self) -> None:
        """Read the node's properties and, unless a sample has already been received, the agent's last sample."""
        async with self._connection() as connection:
            if self._last_s is None:
                self._take_last(await self._get_json(connection, self._samples_path(None)))
            await self._read_node(connection)
        self._is_introduced = True

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[AgentConnection]:
        loop = asyncio.get_running_loop()
        address = self._address

        def new_connection() -> AgentConnection:
            return AgentConnection(loop.time)

        if address.socket:
            connecting = loop.create_unix_connection(new_connection, address.socket)
        else:
            server_name = address.host if self._tls else None
            connecting = loop.create_connection(
                new_connection, address.host, address.port, ssl=self._tls, server_hostname=server_name
            )
        try:
            transport, connection = await asyncio.wait_for(connecting, CONNECT_TIMEOUT_S)
        except UnicodeError:
            # The name has a label that is empty or too long, so it cannot be resolved.
            raise AgentError("invalid host name (hint: check the agent's address)") from None
        if self._check_peer is not None:
            host, port = transport.get_extra_info("peername")[:2]
            if problem := self._check_peer(host, port):
                transport.abort()
                raise UntrustedServerError(problem)
        self._connections.add(connection)
        try:
            yield connection
        finally:
            self._connections.discard(connection)
            connection.fail(ConnectionResetError())

    async def _get(
        self, connection: AgentConnection, path: str, accept: str, on_event: EventHandler | None = None
    ) -> Response:
        host = LOCAL_HOST if self._address.socket else self._address.authority
        head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: {accept}\r\nUser-Agent: casstat\r\n"
        response = await connection.send(f"{head}{self._headers}\r\n".encode(), on_event)
        self._ever_answered = True
        return response

    def _samples_path(self, since_s: float | None) -> str:
        query = [("metric", selector) for selector in self._selectors]
        if since_s is not None:
            query.append(("since", repr(since_s)))
        return f"/api/v1/samples?{urlencode(query)}"

    async def _get_json(self, connection: AgentConnection, path: str) -> Any:
        response = await self._get(connection, path, JSON)
        if response.status != OK:
            raise AgentError(self._refusal(response))
        return self._json(response.body)

    def _take_last(self, samples: Any) -> None:
        if not isinstance(samples, list):
            raise AgentError("the response is not a list of samples (hint: check the agent's address)")
        for content in samples[-1:]:
            self._take_sample(content, is_last=True)

    def _take_event(self, data: bytes) -> None:
        self._take_sample(self._json(data))

    def _take_sample(self, content: Any, *, is_last: bool = False) -> None:
        if content is None:
            return
        try:
            sample = decoded(content)
        except MalformedSampleError as error:
            raise AgentError(f"a sample {one_line(error)}") from None
        self._last_s = sample.tick.time_s
        self._listener.on_sample(self._key, sample, is_last=is_last)

    def _json(self, data: bytes) -> Any:
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise AgentError("the response is not JSON (hint: check the agent's address)") from None

    async def _read_node(self, connection: AgentConnection) -> None:
        content = await self._get_json(connection, "/api/v1/node")
        if not isinstance(content, Mapping):
            raise AgentError("the response does not describe a node (hint: check the agent's address)")
        peers = content.get("peers")
        peers = peers[:MAX_PEERS] if isinstance(peers, list) else []
        usable = [peer for peer in peers if isinstance(peer, str) and 0 < len(peer) <= MAX_ADDRESS_CHARS]
        self._listener.on_node(self._key, node_info(content), _text(content, "address"), usable)

    def _refusal(self, response: Response) -> str:
        if response.status == UNAUTHORIZED:
            return self._diagnostics.of_status(response.status, response.reason).message(self._hint)
        if response.status in (OK, NOT_FOUND):
            return "not a casstat agent (hint: for a Jolokia agent, use its complete URL)"
        return f"HTTP {response.status} {self._diagnostics.quoted(response.reason)}"

    def _failure_reason(self, error: Exception) -> str:
        if isinstance(error, AgentError):
            return str(error)
        # If a name has several addresses, asyncio combines their errors into one message.
        if isinstance(error, ConnectionRefusedError) or f"[Errno {errno.ECONNREFUSED}]" in str(error):
            listen = self._address.authority
            hint = "run 'casstat agent' on that machine, or use the URL of a Jolokia agent"
            return f"no agent is listening at {listen} (hint: {hint})"
        if isinstance(error, TimeoutError | asyncio.TimeoutError):
            return "no response in time"
        if (
            isinstance(error, OSError)
            and (error.errno or 0) > 0
            and not isinstance(error, ssl.SSLError | ConnectionError)
        ):
            return os.strerror(error.errno or 0)
        if self._ever_answered and isinstance(error, CLOSED):
            return "connection closed"
        return self._diagnostics.of_error(error).message(self._hint)


def unexpected_text(error: Exception) -> str:
    """Return the message for an unexpected exception, which is always a bug."""
    return f"unexpected {type(error).__name__}: {one_line(error)}; this is a bug in casstat"


def node_info(content: Mapping[str, Any]) -> NodeInfo:
    """Return a node's properties from the agent's JSON; properties of the wrong type are omitted."""
    interval_s = content.get("interval_s")
    is_valid = isinstance(interval_s, int | float) and 0.01 <= interval_s <= 86400
    return NodeInfo(
        _text(content, "cluster"),
        dc_rack(_text(content, "dc"), _text(content, "rack")),
        _text(content, "source") == "nodetool",
        float(interval_s) if is_valid and interval_s is not None else 0.0,
        Placement(*(_text(content, key) for key in ("machine", "network", "disk", "interface"))),
    )


def _text(content: Mapping[str, Any], key: str) -> str:
    text = content.get(key)
    return text[:200] if isinstance(text, str) else ""


LEARN_TIMEOUT_S = 3.0
# Delay after an unexpected error.
RETRY_S = 1.0


class _Stopped(Exception):  # noqa: N818 - not an error
    """The feed has been stopped."""


class _Clock(SystemClock):
    """The system clock; `stop` interrupts its sleep."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def sleep(self, seconds: float) -> None:
        """Sleep for at least `seconds`. Raises _Stopped if the feed is stopped."""
        if self._stop.wait(seconds):
            raise _Stopped


class JolokiaFeed:
    """Samples one node in a thread of its own, which calls `listener`, until `stop` is called."""

    def __init__(self, key: str, connect: Callable[[], Jolokia], interval_s: float, listener: FeedListener) -> None:
        self._key = key
        self._connect = connect
        self._interval_s = interval_s
        self._listener = listener
        self._stop = threading.Event()
        self._request: tuple[frozenset[str], bool] = frozenset(), False
        self._reported: tuple[Identity, tuple[str, ...]] | None = None
        self._thread = threading.Thread(target=self._run, name=f"top {key}", daemon=True)

    def request(self, metrics: frozenset[str], *, with_tables: bool) -> None:
        """Read these metrics from now on; a new metric's first rate appears after two ticks.

        Starts the thread if it is not running.
        """
        self._request = metrics, with_tables
        if not self._thread.is_alive() and not self._stop.is_set():
            self._thread.start()

    def stop(self) -> None:
        """Ask the thread to stop, without waiting for it."""
        self._stop.set()

    def _run(self) -> None:
        clock = _Clock(self._stop)
        with suppress(_Stopped):
            while not self._stop.is_set():
                try:
                    self._follow(clock)
                except _Stopped:
                    raise
                except Exception as error:
                    # Report the error, because the thread must not end silently.
                    self._listener.on_failure(self._key, unexpected_text(error))
                    clock.sleep(RETRY_S)

    def _follow(self, clock: _Clock) -> None:
        points = ticks(clock, self._interval_s, aligned=True)
        with closing(self._connect()) as jolokia:
            while not self._stop.is_set():
                self._sample(jolokia, clock, points)

    def _sample(self, jolokia: Jolokia, clock: _Clock, points: Iterator[Tick]) -> None:
        request = self._request
        metrics, with_tables = request
        selection = Selection(
            metrics | {series[0] for series in IDENTITY_LABELS}, "", "", DEFAULT_TABLES if with_tables else 0
        )
        overrides = NameOverrides(fallback_node=jolokia.host)
        source = MBeanSource(jolokia, BEANS, selection, clock)
        with closing(NodeSampler(source, selection, overrides, clock)) as sampler:
            try:
                sampler.learn(LEARN_TIMEOUT_S)
            except SourceError as error:
                self._listener.on_failure(self._key, str(error))
            identity, stream = Identity(), sampler.sample_stream()
            for snapshot in sampler.snapshots(points, self._interval_s):
                identity = identity.after(snapshot)
                self._report_node(identity, sampler)
                sample = stream.add(snapshot)
                if sample is None:
                    continue
                if problem := problem_of(snapshot, sampler.node_sources):
                    self._listener.on_failure(self._key, problem)
                else:
                    self._listener.on_sample(self._key, sample)
                if request != self._request:
                    return

    def _report_node(self, identity: Identity, sampler: NodeSampler) -> None:
        peers = sampler.facts.peers
        if self._reported == (identity, peers):
            return
        self._reported = identity, peers
        location = dc_rack(identity.dc, identity.rack)
        info = NodeInfo(identity.cluster, location, False, self._interval_s, Placement(*identity_of(sampler.host)))
        self._listener.on_node(self._key, info, sampler.facts.address, peers)


def problem_of(snapshot: Snapshot, sources: Collection[str]) -> str:
    """Return the reason why these sources have no values in a snapshot; "" if any source has values."""
    scrapes = [scrape for scrape in snapshot.scrapes if scrape.source in sources]
    if any(scrape.values for scrape in scrapes):
        return ""
    return next((scrape.problem for scrape in scrapes if scrape.problem), "")
