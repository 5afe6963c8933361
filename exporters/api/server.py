"""The HTTP server: it runs in a separate thread and stops within about a second."""

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from collector.printable import count_text
from exporters.api.auth import Guard
from exporters.api.certificate_reloader import WebConfigReloader, certificate_names
from exporters.api.client_addresses import is_loopback
from exporters.api.connections import HEAD_S, IDLE_S, MAX_CONNECTIONS, ClientConnection, Connections
from exporters.api.credentials import Passwords
from exporters.api.host_header import Hosts
from exporters.api.listen_address import bind, check_address, parse_address, unix_path
from exporters.api.request_limits import BoundedProtocol
from exporters.rate_limited_logger import RateLimitedLogger

SWEEP_S = 1.0
GRACE_S = 0.2
STOP_S = 1.0
_TLS_ERRORS = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client sent no certificate",
    "HTTP_REQUEST": "the client speaks plain HTTP (hint: use https://)",
}

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
                http=BoundedProtocol,
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
        self._connections = Connections(max_connections)
        self._error_log = logging.Logger("casstat.http", logging.ERROR)
        self._error_log.addHandler(_OneLineHandler(log))
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
        """Start accepting connections."""
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
            silent = self._connections.close_expired(loop.time())
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
                self._connections.evict_one()
                await asyncio.sleep(0.1)
                continue
            connection = ClientConnection(client.close, loop.time())
            if not self._connections.add(connection):
                self._log(f"{len(self._connections)} connections are open; another one was rejected", kind="full")
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

        def protocol() -> BoundedProtocol:
            return BoundedProtocol(
                self.config,
                self.server_state,
                loop,
                connection,
                self._error_log,
                self._is_admitted,
                self._connections.remove,
            )

        task = asyncio.current_task()
        if client.fileno() < 0 or task is None:
            return
        connection.abort = task.cancel
        client.setblocking(False)
        with contextlib.suppress(OSError):
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        options: dict[str, Any] = {"ssl": self._tls, "ssl_handshake_timeout": HEAD_S} if self._tls else {}
        try:
            await loop.connect_accepted_socket(protocol, client, **options)
        except asyncio.CancelledError:
            self._connections.remove(connection)
        except OSError as error:
            self._connections.remove(connection)
            self._log(f"{peer}: TLS handshake failed: {_reason(error)}", kind="tls")

    def _is_admitted(self, transport: asyncio.Transport) -> bool:
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


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"client certificate: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return _TLS_ERRORS.get(error.reason, error.reason.replace("_", " ").lower())
    if isinstance(error, ConnectionAbortedError):
        return f"not completed within {HEAD_S:.0f} s"
    return error.strerror or "the client closed the connection"


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
