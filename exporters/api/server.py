"""The HTTP server: it runs in a separate thread, bounds connections and requests, and stops within about a second.

All private names of uvicorn that casstat overrides or uses are in this module.
"""

import asyncio
import contextlib
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httptools
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from collector.printable import count_text
from exporters.api.auth import Guard, Hosts, Passwords, is_loopback
from exporters.api.sockets import (
    HEAD_S,
    IDLE_S,
    MAX_CONNECTIONS,
    ClientConnection,
    Connections,
    WebConfigReloader,
    bind,
    certificate_names,
    check_address,
    handshake_failure,
    parse_address,
    unix_path,
)
from exporters.rate_limited_logger import RateLimitedLogger

HEAD_BYTES, BODY_BYTES = 16 << 10, 64 << 10
# The maximum number of bytes received for an incomplete message, including chunk headers and trailers.
MESSAGE_BYTES = 8 * BODY_BYTES
MAX_PIPELINED = 64
# A UNIX socket's clients are programs on this machine, like those of the loopback interface.
UNIX_CLIENT = ("127.0.0.1", 0)
SWEEP_S, GRACE_S, STOP_S = 1.0, 0.2, 1.0

Log = Callable[[str], None]


def check(listen: str, web_config: Path | None) -> None:
    """Check that a server could start, leaving nothing open. Raises ListenError or WebConfigError if it could not."""
    WebConfigReloader(web_config, lambda _: None)
    check_address(listen)


class Server:
    """Serves an application until `stop` is called."""

    def __init__(
        self,
        app: ASGIApp,
        listen: str,
        web_config: Path | None,
        log: Log,
        max_connections: int = MAX_CONNECTIONS,
        names: Sequence[str] = (),
        *,
        anonymous_reads: bool = False,
    ) -> None:
        """Bind `listen` (HOST:PORT or unix:PATH), read the web configuration, and serve.

        `log` may be called from any thread; `names` are additional names of the agent (see `host_header`), and
        `anonymous_reads` states whether other machines may read data without credentials.
        Raises ListenError or WebConfigError.
        """
        reloader = WebConfigReloader(web_config, log)
        self._socket = bind(listen)
        self._unix_path = unix_path(listen)
        # For a UNIX socket, the port is 0.
        self.address: tuple[str, int] = self._socket.getsockname()[:2] if self._unix_path is None else (listen, 0)
        config = reloader.config
        is_local = self._unix_path is not None or is_loopback(self.address[0])
        if config.users and config.tls is None and not is_local:
            log(f"{web_config}: passwords are sent unencrypted (hint: configure tls_server_config)")
        # Whether other machines can connect without credentials.
        self.is_open = not is_local and not config.requires_credentials
        self._passwords = Passwords()
        limited_log = RateLimitedLogger(log)
        hosts = Hosts([*([parse_address(listen)[0]] if self._unix_path is None else []), *names])
        guarded = Guard(
            app, lambda: reloader.config, self._passwords, limited_log, hosts, anonymous_reads=anonymous_reads
        )
        self._serving = _Serving(guarded, reloader, limited_log, max_connections)
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The URL of the server, which listens on a host and a port and has no TLS."""
        host, port = self.address
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def stop(self) -> None:
        """Close the listener and all connections, including event streams; return within about a second."""
        self._serving.stop()
        self._thread.join(STOP_S)
        self._passwords.close()
        if self._unix_path is not None:
            self._unix_path.unlink(missing_ok=True)

    def _run(self) -> None:
        asyncio.run(self._serving.serve(sockets=[self._socket]))


class _Serving(uvicorn.Server):
    """Uvicorn's server with a separate accept loop, because uvicorn counts a connection only after the handshake."""

    def __init__(self, app: ASGIApp, reloader: WebConfigReloader, log: RateLimitedLogger, max_connections: int) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                loop="asyncio",
                http=_BoundedProtocol,
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=int(IDLE_S),
            )
        )
        self._reloader = reloader
        self._tls = reloader.context()
        self._log = log
        self.connections = Connections(max_connections)
        self.error_log = logging.Logger("casstat.http", logging.ERROR)
        self.error_log.addHandler(_OneLineHandler(log))
        self._stopping = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._accept_tasks: list[asyncio.Task[None]] = []
        self._handshakes: dict[asyncio.Task[None], socket.socket] = {}

    def stop(self) -> None:
        """Stop serving; may be called from any thread."""
        self.should_exit = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stopping.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._log_loop_error)
        self._loop = loop
        self.servers = []
        self.started = True
        self._accept_tasks = [loop.create_task(self._accept(loop, listener)) for listener in sockets or ()]

    async def main_loop(self) -> None:
        """Close expired connections once a second until `stop` is called."""
        loop = asyncio.get_running_loop()
        while not self.should_exit:
            await self.on_tick(0)
            silent = self.connections.close_expired(loop.time())
            if silent:
                self._log(
                    f"closed {count_text(silent, 'connection')} that sent no request within {HEAD_S:.0f} s",
                    kind="silent",
                )
            self._log.flush()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), SWEEP_S)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Give requests in progress a moment to complete, then abort every connection."""
        for task in (*self._accept_tasks, *self._handshakes):
            task.cancel()
        for listener in sockets or ():
            listener.close()
        state = self.server_state
        for connection in list(state.connections):
            connection.shutdown()
        if state.tasks:
            await asyncio.wait(list(state.tasks), timeout=GRACE_S)
        # Cancel the requests that are still running, such as event streams, which never end on their own.
        for task in list(state.tasks):
            task.cancel()
        if state.tasks:
            await asyncio.wait(list(state.tasks), timeout=GRACE_S)
        for connection in list(state.connections):
            connection.transport.abort()
        # Give the loop time to run `connection_lost`.
        await asyncio.sleep(0.01)

    async def _accept(self, loop: asyncio.AbstractEventLoop, listener: socket.socket) -> None:
        while True:
            try:
                client, address = await loop.sock_accept(listener)
            except ConnectionError:
                # The client has already disconnected.
                continue
            except OSError as error:
                self._log(f"cannot accept a connection: {error.strerror}", kind="accept")
                self.connections.evict_one()
                await asyncio.sleep(0.1)
                continue
            connection = ClientConnection(client.close, loop.time())
            if not self.connections.add(connection):
                self._log(f"{len(self.connections)} connections are open; another one was rejected", kind="full")
                client.close()
                continue
            # The client of a UNIX socket has no address.
            peer = str(address[0]) if address else "unix"
            task = loop.create_task(self._handshake(loop, client, peer, connection))
            self._handshakes[task] = client
            task.add_done_callback(self._handshake_done)

    def _handshake_done(self, task: "asyncio.Task[None]") -> None:
        client = self._handshakes.pop(task)
        if task.cancelled():
            # The task was cancelled before it started, so the socket must be closed here.
            client.close()

    async def _handshake(
        self, loop: asyncio.AbstractEventLoop, client: socket.socket, peer: str, connection: ClientConnection
    ) -> None:
        """Complete the TLS handshake if TLS is enabled, and hand the connection to its protocol."""
        task = asyncio.current_task()
        if client.fileno() < 0 or task is None:
            return
        connection.abort = task.cancel
        client.setblocking(False)
        with contextlib.suppress(OSError):
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        options: dict[str, Any] = {"ssl": self._tls, "ssl_handshake_timeout": HEAD_S} if self._tls else {}
        try:
            await loop.connect_accepted_socket(lambda: _BoundedProtocol(self, loop, connection), client, **options)
        except asyncio.CancelledError:
            self.connections.remove(connection)
        except OSError as error:
            self.connections.remove(connection)
            self._log(f"{peer}: TLS handshake failed: {handshake_failure(error)}", kind="tls")

    def is_admitted(self, transport: asyncio.Transport) -> bool:
        """Return whether the client may connect; if names are configured, its certificate must contain one of them."""
        tls = self._reloader.config.tls
        if tls is None or not tls.client_allowed_sans:
            return True
        if any(name in tls.client_allowed_sans for name in certificate_names(transport.get_extra_info("peercert"))):
            return True
        peer = (transport.get_extra_info("peername") or ("?",))[0]
        reason = "the client certificate contains no name listed in client_allowed_sans"
        self._log(f"{peer}: connection rejected: {reason}", kind="name")
        return False

    def _log_loop_error(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        text = f"{context.get('message')}: {type(error).__name__}: {error}" if error else str(context.get("message"))
        self._log(" ".join(text.split())[:300], kind="loop")


class _OneLineHandler(logging.Handler):
    """Logs one line where uvicorn would print a traceback."""

    def __init__(self, log: RateLimitedLogger) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, asyncio.CancelledError):
            # `shutdown` cancelled the task, which is not an error.
            return
        if error is None:
            self._log(" ".join(record.getMessage().split())[:300], kind="fault")
            return
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = f" ({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})" if trace else ""
        text = " ".join(str(error).split())[:200]
        self._log(f"request failed: {type(error).__name__}: {text}{where}", kind="fault")


class _BoundError(Exception):
    """Raised in a parser callback to reject a request; httptools turns it into an HttpParserError."""


class _BoundedProtocol(HttpToolsProtocol):
    """Rejects request heads and bodies that are too large, and keeps its `ClientConnection` up to date."""

    def __init__(self, server: _Serving, loop: asyncio.AbstractEventLoop, connection: ClientConnection) -> None:
        super().__init__(server.config, server.server_state, {}, loop)
        self.logger, self.access_log = server.error_log, False
        self._connection = connection
        self._server = server
        self._refused = (400, "malformed HTTP request")
        self._in_head, self._ended = True, False
        self._head = self._body = self._received = 0
        self._certified = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if transport.get_extra_info("socket").family == socket.AF_UNIX:
            self.client = UNIX_CLIENT
        self._connection.abort = transport.abort
        self._certified = bool(transport.get_extra_info("peercert"))
        if not self._server.is_admitted(transport):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.remove(self._connection)
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        self._connection.request_begins(self.loop.time())
        self._ended = False
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Upgrades to other protocols are not supported, and the bytes that follow must not be parsed as a request.
            self.cycle.keep_alive = False
            self.flow.pause_reading()
        except httptools.HttpParserError:
            self._refuse()
        else:
            self._bound(len(data))

    def _bound(self, received_bytes: int) -> None:
        """Limit the bytes that the parser buffers for an incomplete message."""
        self._received = 0 if self._ended else self._received + received_bytes
        if self._in_head and self._received > HEAD_BYTES:
            self._refused = 431, f"the request head is larger than {HEAD_BYTES} bytes"
            self._refuse()
        elif self._received > MESSAGE_BYTES:
            self._refused = 413, f"the body is larger than {BODY_BYTES} bytes"
            self._refuse()

    def _refuse(self) -> None:
        """Send an error and close the connection, or abort it if another response is in progress."""
        if not getattr(self.cycle, "response_complete", True):
            self.transport.abort()
            return
        status, reason = self._refused
        body = json.dumps({"error": reason}).encode()
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
        self.transport.write(f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body)
        self.transport.close()

    def on_message_begin(self) -> None:
        """Reset the counters for a new request, and record its time and whether the client has a certificate."""
        super().on_message_begin()
        self._head = self._body = 0
        scope: dict[str, object] = self.scope  # type: ignore[assignment]
        scope["casstat.received_s"] = time.time()
        scope["casstat.certified"] = self._certified

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Reject oversized bodies, too many pipelined requests, and a missing (in HTTP/1.1) or repeated Host header."""
        self._in_head = False
        self._connection.head_complete(self.loop.time())
        if len(self.pipeline) >= MAX_PIPELINED:
            raise _BoundError
        for name, value in self.headers:
            if name == b"content-length" and (len(value) > 9 or int(value) > BODY_BYTES):
                self._too_large()
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1 or (not hosts and self.parser.get_http_version() == "1.1"):
            self._refused = 400, "the Host header is missing or repeated"
            raise _BoundError
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body += len(body)
        if self._body > BODY_BYTES:
            self._too_large()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head = self._ended = True
        if self.cycle.response_complete:
            # The response was completed before the request, for example because of an error.
            self._connection.idle(self.loop.time())
        else:
            self._connection.request_complete()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:
            self._connection.idle(self.loop.time())

    def pause_writing(self) -> None:
        super().pause_writing()
        self._connection.write_stalled(self.loop.time())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._connection.write_resumed()

    def _count_head(self, size: int) -> None:
        self._head += size
        if self._head > HEAD_BYTES:
            self._refused = 431, f"the request head is larger than {HEAD_BYTES} bytes"
            raise _BoundError

    def _too_large(self) -> None:
        self._refused = 413, f"the body is larger than {BODY_BYTES} bytes"
        raise _BoundError
