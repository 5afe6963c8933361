"""The server: bound where people said, in a thread of its own, ended within a second."""

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

from exporters.api.auth import Guard
from exporters.api.certificate_reloader import Access, named
from exporters.api.client_addresses import is_loopback
from exporters.api.connections import HEAD_S, IDLE_S, MOST, ClientConnection, Connections
from exporters.api.credentials import Passwords
from exporters.api.host_header import Hosts
from exporters.api.listen_address import address, bound
from exporters.api.request_limits import BoundedProtocol
from exporters.rate_limited_logger import RateLimitedLogger

LOOK_S = 1.0
GRACE_S = 0.2
STOP_S = 1.0
_TLS_WORDS = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "shows no certificate",
    "HTTP_REQUEST": "speaks plain HTTP: use https://",
}

Say = Callable[[str], None]


def check(listen: str, web_config: Path | None) -> None:
    """Raise ListenError or WebConfigError where a server could not start; nothing stays open."""
    Access(web_config, lambda _: None)
    bound(listen).close()


class Server:
    """Serves an application until it is stopped."""

    def __init__(
        self,
        app: ASGIApp,
        listen: str,
        web_config: Path | None,
        say: Say,
        most: int = MOST,
        names: Sequence[str] = (),
    ) -> None:
        """Bind `listen` (HOST:PORT), read the web configuration, and serve; `say` is called from any thread.

        At most `most` are connected at once. `names` are more names of the agent (see `host_header`).
        Raises ListenError, WebConfigError.
        """
        access = Access(web_config, say)
        self._socket = bound(listen)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        config = access.config
        if config.users and config.tls is None and not is_loopback(self.address[0]):
            say(f"{web_config}: passwords are sent readable for everybody on the way: configure tls_server_config too")
        self._passwords = Passwords()
        seldom = RateLimitedLogger(say)
        hosts = Hosts([address(listen)[0], *names])
        guarded = Guard(app, lambda: access.config, self._passwords, seldom, hosts)
        self._serving = _Serving(guarded, access, seldom, most)
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End all connections, those that follow live too, and listen no more; returns within a second or so."""
        self._serving.stop()
        self._thread.join(STOP_S)
        self._passwords.close()

    def _run(self) -> None:
        asyncio.run(self._serving.serve(sockets=[self._socket]))


class _Serving(uvicorn.Server):
    """Uvicorn's server, which accepts connections itself: before TLS is agreed upon they count too."""

    def __init__(self, app: ASGIApp, access: Access, say: RateLimitedLogger, most: int) -> None:
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
        self._access = access
        self._tls = access.context()
        self._say = say
        self._visits = Connections(most)
        self._log = logging.Logger("casstat.http", logging.ERROR)
        self._log.addHandler(_Handler(say))
        self._ends = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._accepting: list[asyncio.Task[None]] = []
        self._greeting: dict[asyncio.Task[None], socket.socket] = {}

    def stop(self) -> None:
        """End; may be called from any thread."""
        self.should_exit = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._ends.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._wrong)
        self._loop = loop
        self.servers = []
        self.started = True
        self._accepting = [loop.create_task(self._accept(loop, listening)) for listening in sockets or ()]

    async def main_loop(self) -> None:
        """Look after connections every second, until the end."""
        loop = asyncio.get_running_loop()
        while not self.should_exit:
            await self.on_tick(0)
            silent = self._visits.sweep(loop.time())
            if silent:
                self._say(f"{silent} connections were closed: they asked nothing for {HEAD_S:.0f} s", kind="silent")
            self._say.flush()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._ends.wait(), LOOK_S)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what is under way, politely for a moment, then at once."""
        for task in (*self._accepting, *self._greeting):
            task.cancel()
        for listening in sockets or ():
            listening.close()
        state = self.server_state
        for connection in list(state.connections):
            connection.shutdown()
        if state.tasks:
            await asyncio.wait(list(state.tasks), timeout=GRACE_S)
        # Who follows live would never end.
        for task in list(state.tasks):
            task.cancel()
        if state.tasks:
            await asyncio.wait(list(state.tasks), timeout=GRACE_S)
        for connection in list(state.connections):
            connection.transport.abort()
        # Their ends are heard of a little later.
        await asyncio.sleep(0.01)

    async def _accept(self, loop: asyncio.AbstractEventLoop, listening: socket.socket) -> None:
        while True:
            try:
                connection, address = await loop.sock_accept(listening)
            except ConnectionError:
                # Who knocked is gone again.
                continue
            except OSError as error:
                self._say(f"no connection can be accepted: {error.strerror}", kind="accept")
                self._visits.make_room()
                await asyncio.sleep(0.1)
                continue
            visit = ClientConnection(connection.close, loop.time())
            if not self._visits.enter(visit):
                self._say(f"{len(self._visits)} are connected, and no more are let in", kind="full")
                connection.close()
                continue
            task = loop.create_task(self._greet(loop, connection, str(address[0]), visit))
            self._greeting[task] = connection
            task.add_done_callback(self._greeted)

    def _greeted(self, task: "asyncio.Task[None]") -> None:
        connection = self._greeting.pop(task)
        if task.cancelled():
            # It had no time to begin.
            connection.close()

    async def _greet(
        self, loop: asyncio.AbstractEventLoop, connection: socket.socket, peer: str, visit: ClientConnection
    ) -> None:
        """Agree upon TLS, where that is spoken, and hand the connection to its protocol."""

        def protocol() -> BoundedProtocol:
            return BoundedProtocol(
                self.config, self.server_state, loop, visit, self._log, self._admitted, self._visits.leave
            )

        task = asyncio.current_task()
        if connection.fileno() < 0 or task is None:
            return
        visit.end = task.cancel
        connection.setblocking(False)
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        more: dict[str, Any] = {"ssl": self._tls, "ssl_handshake_timeout": HEAD_S} if self._tls else {}
        try:
            await loop.connect_accepted_socket(protocol, connection, **more)
        except asyncio.CancelledError:
            self._visits.leave(visit)
        except OSError as error:
            self._visits.leave(visit)
            self._say(f"{peer}: a connection was refused: {_reason(error)}", kind="tls")

    def _admitted(self, transport: asyncio.Transport) -> bool:
        """Return whether whoever shows that certificate may come in."""
        tls = self._access.config.tls
        if tls is None or not tls.client_allowed_sans:
            return True
        if any(name in tls.client_allowed_sans for name in named(transport.get_extra_info("peercert"))):
            return True
        peer = (transport.get_extra_info("peername") or ("?",))[0]
        self._say(f"{peer}: a connection was refused: its certificate has none of client_allowed_sans", kind="name")
        return False

    def _wrong(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        told = f"{context.get('message')}: {type(error).__name__}: {error}" if error else str(context.get("message"))
        self._say(" ".join(told.split())[:300], kind="loop")


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return _TLS_WORDS.get(error.reason, error.reason.replace("_", " ").lower())
    if isinstance(error, ConnectionAbortedError):
        return f"TLS was not agreed upon in {HEAD_S:.0f} s"
    return error.strerror or "it ended before TLS was agreed upon"


class _Handler(logging.Handler):
    """Says in one line what uvicorn would print as a traceback."""

    def __init__(self, say: RateLimitedLogger) -> None:
        super().__init__()
        self._seldom = say

    def emit(self, record: logging.LogRecord) -> None:
        """Say it."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, asyncio.CancelledError):
            # It was the end of the server that ended it.
            return
        if error is None:
            self._seldom(" ".join(record.getMessage().split())[:300], kind="fault")
            return
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = f" ({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})" if trace else ""
        self._seldom(
            f"an answer failed: {type(error).__name__}: {' '.join(str(error).split())[:200]}{place}", kind="fault"
        )
