"""The API's sockets: the address it listens on (HOST:PORT or unix:PATH), the open connections, and their TLS contexts.

The number of connections is bounded, and each has a deadline that depends on its state. The web configuration is
reloaded, with its certificates, when a file changes.
"""

import errno
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from collector.file_access import file_errors
from collector.http.access import AccessError, load_authorities, load_certificate
from exporters.api.web_config import (
    IF_GIVEN,
    MAX_FILE_BYTES,
    NO_CERTIFICATE,
    REQUIRED,
    Tls,
    WebConfig,
    WebConfigError,
    parsed,
)

MAX_CONNECTIONS = 512
HEAD_S, BODY_S, IDLE_S, STALLED_S = 10.0, 10.0, 75.0, 30.0
"""Time limits for a request head (including the handshake), a body, an idle connection, and a stalled client."""
BACKLOG = 1024
UNIX_PREFIX = "unix:"
# Only the agent's user and root can connect to a UNIX socket.
UNIX_MODE = 0o600
# Linux limits the path of a UNIX socket to 107 bytes.
MAX_UNIX_BYTES = 107
_PATTERN = re.compile(r"(?:\[(?P<six>[^\]]*)\]|(?P<name>[^:\[\]]*)):(?P<port>\d{1,5})")
_PORT = re.compile(r"\d+")
LOOPBACK = "127.0.0.1"
_ERRORS = {
    errno.EADDRINUSE: "address already in use (hint: choose another port)",
    errno.EACCES: "permission denied (hint: choose a port above 1023 or run as root)",
    errno.EADDRNOTAVAIL: "not an address of this machine",
}


class ListenError(Exception):
    """Raised if the API cannot listen on an address; the message is one line with the cause."""


def parse_address(listen: str) -> tuple[str, int]:
    """Return the host ("" for all addresses) and port of HOST:PORT, :PORT or [ADDRESS]:PORT. Raises ListenError."""
    match = _PATTERN.fullmatch(listen)
    if match is None or int(match["port"]) > 65535:
        raise ListenError(f"{listen!r}: not HOST:PORT, :PORT or [ADDRESS]:PORT with a port of at most 65535")
    return match["six"] or match["name"] or "", int(match["port"])


def with_default_host(text: str) -> str:
    """Return HOST:PORT for [HOST:]PORT; the default host is the loopback address. Raises ListenError."""
    listen = f"{LOOPBACK}:{text}" if _PORT.fullmatch(text) else text
    parse_address(listen)
    return listen


def unix_path(listen: str) -> Path | None:
    """Return the path of unix:PATH; None for any other address. Raises ListenError."""
    if not listen.startswith(UNIX_PREFIX):
        return None
    path = Path(listen.removeprefix(UNIX_PREFIX))
    if not path.is_absolute() or len(bytes(path)) > MAX_UNIX_BYTES:
        raise ListenError(f"{listen!r}: the path must be absolute and at most {MAX_UNIX_BYTES} bytes long")
    return path


def bind(listen: str) -> socket.socket:
    """Return a listening socket for HOST:PORT or unix:PATH; without HOST, for all IPv6 and IPv4 addresses.

    Raises ListenError.
    """
    bound = _bound(listen)
    try:
        bound.listen(BACKLOG)
    except OSError as error:
        _release(bound)
        raise _listen_error(listen, error) from None
    return bound


def check_address(listen: str) -> None:
    """Raise ListenError if `bind` would.

    It accepts no connections, because a client that connected would assume that the agent is ready.
    """
    _release(_bound(listen))


def _bound(listen: str) -> socket.socket:
    """Return a socket that is bound but does not listen yet. Raises ListenError."""
    path = unix_path(listen)
    if path is not None:
        return _unix_socket(listen, path)
    host, port = parse_address(listen)
    try:
        addresses: Sequence[tuple[socket.AddressFamily, Any]]
        if host:
            results = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM, 0, socket.AI_PASSIVE)
            # If a name resolves to both IPv4 and IPv6, use IPv4, as other exporters do.
            addresses = [min(((row[0], row[4]) for row in results), key=lambda address: address[0] != socket.AF_INET)]
        else:
            addresses = [(socket.AF_INET6, ("::", port)), (socket.AF_INET, ("0.0.0.0", port))]  # noqa: S104
    except (OSError, UnicodeError):
        raise ListenError(f"{listen}: {host} cannot be resolved (hint: use an IP address)") from None
    for family, address in addresses[:-1]:
        try:
            return _tcp_socket(family, address)
        except OSError as error:
            if error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
                raise _listen_error(listen, error) from None
    try:
        return _tcp_socket(*addresses[-1])
    except OSError as error:
        raise _listen_error(listen, error) from None


def _release(bound: socket.socket) -> None:
    """Close a socket; the file of a UNIX socket is deleted."""
    name = bound.getsockname()
    bound.close()
    if isinstance(name, str):
        Path(name).unlink(missing_ok=True)


def _unix_socket(listen: str, path: Path) -> socket.socket:
    _remove_stale(path)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(str(path))
        # Connections are refused until `listen` is called, so set the mode first.
        path.chmod(UNIX_MODE)
        bound.setblocking(False)
    except OSError as error:
        bound.close()
        raise ListenError(f"{listen}: {error.strerror}") from None
    return bound


def _remove_stale(path: Path) -> None:
    """Remove a socket that an agent left behind when it was killed."""
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        if path.is_socket() and client.connect_ex(str(path)) == errno.ECONNREFUSED:
            path.unlink()


def _listen_error(listen: str, error: OSError) -> ListenError:
    return ListenError(f"{listen}: {_ERRORS.get(error.errno or 0, error.strerror)}")


def _tcp_socket(family: socket.AddressFamily, address: Any) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(address[0] != "::"))
        bound.bind(address)
        bound.setblocking(False)
    except OSError:
        bound.close()
        raise
    return bound


class ClientConnection:
    """An open connection. It counts towards the limit from the moment it is accepted."""

    def __init__(self, abort: Callable[[], object], now_s: float) -> None:
        """Create a connection; calling `abort` closes it immediately."""
        self.abort = abort
        self.has_requested = False
        self.is_waiting = True
        self._deadline_s = now_s + HEAD_S
        self._stalled_deadline_s = inf

    def request_begins(self, now_s: float) -> None:
        """Record that data has arrived; on an idle connection, this begins another request."""
        if self.is_waiting and self.has_requested:
            self.is_waiting, self._deadline_s = False, now_s + HEAD_S

    def head_complete(self, now_s: float) -> None:
        """Record that a request head is complete; its body must arrive within BODY_S."""
        self.has_requested, self.is_waiting, self._deadline_s = True, False, now_s + BODY_S

    def request_complete(self) -> None:
        """Record that a request is complete; its response has no time limit unless the client stops reading."""
        self._deadline_s = inf

    def idle(self, now_s: float) -> None:
        """Record that every request has been answered."""
        self.is_waiting, self._deadline_s = True, now_s + IDLE_S

    def write_stalled(self, now_s: float) -> None:
        """Record that the client is not reading the response."""
        self._stalled_deadline_s = now_s + STALLED_S

    def write_resumed(self) -> None:
        """Record that the client is reading again."""
        self._stalled_deadline_s = inf

    def is_expired(self, now_s: float) -> bool:
        """Return whether a deadline has passed."""
        return now_s >= min(self._deadline_s, self._stalled_deadline_s)


class Connections:
    """All open connections, in the order in which they were accepted.

    At the limit, a new connection replaces the oldest one that has never sent a complete request head, or else the
    oldest idle one.
    """

    def __init__(self, max_connections: int = MAX_CONNECTIONS) -> None:
        self._max_connections = max_connections
        self._all: dict[ClientConnection, None] = {}

    def __len__(self) -> int:
        return len(self._all)

    def add(self, connection: ClientConnection) -> bool:
        """Add a connection if there is room or another can be evicted; return whether it was added."""
        if len(self._all) >= self._max_connections and not self.evict_one():
            return False
        self._all[connection] = None
        return True

    def remove(self, connection: ClientConnection) -> None:
        self._all.pop(connection, None)

    def evict_one(self) -> bool:
        """Close the connection that a new one may replace; return False if all are busy."""
        candidate = next((connection for connection in self._all if not connection.has_requested), None)
        candidate = candidate or next((connection for connection in self._all if connection.is_waiting), None)
        if candidate is None:
            return False
        self.remove(candidate)
        candidate.abort()
        return True

    def close_expired(self, now_s: float) -> int:
        """Close the connections that have passed their deadlines; return how many of them never sent a request."""
        expired = [connection for connection in self._all if connection.is_expired(now_s)]
        for connection in expired:
            self.remove(connection)
            connection.abort()
        return sum(not connection.has_requested for connection in expired)


RETRY_S = 5.0
_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_VERIFY_MODES = {NO_CERTIFICATE: ssl.CERT_NONE, IF_GIVEN: ssl.CERT_OPTIONAL, REQUIRED: ssl.CERT_REQUIRED}
_FILES = {"ca": "client_ca_file", "certificate": "cert_file", "key": "key_file"}
_TLS_ERRORS = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client sent no certificate",
    "HTTP_REQUEST": "the client speaks plain HTTP (hint: use https://)",
}
_NAME_KINDS = ("DNS", "email", "IP Address", "URI")
_State = tuple[tuple[Path, tuple[int, ...] | None], ...]


class WebConfigReloader:
    """Holds the current web configuration; must be used by a single thread after construction."""

    def __init__(self, file: Path | None, log: Callable[[str], None]) -> None:
        """Load the file; without one, anyone can read the API over plain HTTP. Raises WebConfigError."""
        self._file = file
        self._log = log
        self._loaded = _Loaded(WebConfig(), None, ()) if file is None else _load(file)
        self._seen = self._loaded.state
        self._error = ""
        self._retry_s = 0.0

    @property
    def config(self) -> WebConfig:
        """The current configuration; it is reloaded first if its files have changed."""
        self._reload_if_changed()
        return self._loaded.config

    def context(self) -> ssl.SSLContext | None:
        """Return a TLS context that stays up to date after reloads; None for plain HTTP."""
        plain = self._loaded.context
        return None if plain is None else CurrentContext.using(lambda: self._context() or plain)

    def _context(self) -> ssl.SSLContext | None:
        self._reload_if_changed()
        return self._loaded.context

    def _reload_if_changed(self) -> None:
        """Reload the files if one has changed. On failure, log the error once and keep the previous configuration."""
        if self._file is None:
            return
        state, now_s = _state(path for path, _ in self._seen), time.monotonic()
        # After an error, retry even without a change: the fix may be in a file that is not being watched.
        if state == self._seen and not (self._error and now_s >= self._retry_s):
            return
        self._seen, self._retry_s = state, now_s + RETRY_S
        try:
            loaded = _load(self._file)
            if (loaded.context is None) != (self._loaded.context is None):
                raise WebConfigError(f"{self._file}: TLS cannot be enabled or disabled without a restart")
        except WebConfigError as error:
            if str(error) != self._error:
                self._log(f"{error}; the previous configuration stays in use")
            self._error = str(error)
            return
        self._loaded, self._seen, self._error = loaded, loaded.state, ""
        self._log(f"{self._file}: reloaded, because it or a certificate has changed")


@dataclass(frozen=True)
class _Loaded:
    """A loaded configuration, and the state of its files when it was loaded."""

    config: WebConfig
    context: ssl.SSLContext | None
    state: _State


def _load(file: Path) -> _Loaded:
    """Return the file's configuration and its TLS context. Raises WebConfigError."""
    # Record the state first, so that a change while the file is being read causes another reload.
    before = _state([file])
    try:
        with file_errors(file, WebConfigError), file.open("rb") as stream:
            text = stream.read(MAX_FILE_BYTES + 1).decode()
    except UnicodeDecodeError:
        raise WebConfigError(f"{file}: not UTF-8 text") from None
    config = parsed(text, file)
    if config.tls is None:
        return _Loaded(config, None, before)
    tls = config.tls
    state = (*before, *_state(path for path in (tls.cert_file, tls.key_file, tls.client_ca_file) if path))
    return _Loaded(config, server_context(tls), state)


def _state(paths: Iterable[Path]) -> _State:
    return tuple((path, _fingerprint(path)) for path in paths)


def _fingerprint(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


class CurrentContext(ssl.SSLContext):
    """A TLS context that wraps each connection with the latest context, so that new certificates take effect."""

    _context_in_use: Callable[[], ssl.SSLContext]

    @classmethod
    def using(cls, now: Callable[[], ssl.SSLContext]) -> "CurrentContext":
        """Return a context that delegates to the context that `now` returns."""
        context = cls(ssl.PROTOCOL_TLS_SERVER)
        context._context_in_use = now
        return context

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        return self._context_in_use().wrap_bio(*arguments, **options)


def server_context(tls: Tls) -> ssl.SSLContext:
    """Return the TLS context for accepting connections. Raises WebConfigError if a file cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version, context.maximum_version = _VERSIONS[tls.min_version], _VERSIONS[tls.max_version]
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE | ssl.OP_NO_RENEGOTIATION
    try:
        load_certificate(context, tls.cert_file, tls.key_file)
        if tls.client_ca_file is not None:
            load_authorities(context, tls.client_ca_file)
    except AccessError as error:
        raise WebConfigError(error.message(_FILES)) from None
    context.verify_mode = _VERIFY_MODES[tls.client_auth]
    try:
        context.set_ciphers(":".join(tls.ciphers))
        if tls.curve:
            context.set_ecdh_curve(tls.curve)
    except (ssl.SSLError, ValueError):
        raise WebConfigError("cipher_suites, curve_preferences: not supported by this machine's OpenSSL") from None
    return context


def certificate_names(certificate: Any) -> Iterator[str]:
    """Yield the subject alternative names of a certificate that `getpeercert` returned."""
    for kind, name in (certificate or {}).get("subjectAltName", ()):
        if kind in _NAME_KINDS:
            yield name


def handshake_failure(error: OSError) -> str:
    """Return the reason for which a TLS handshake with a client failed."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"client certificate: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return _TLS_ERRORS.get(error.reason, error.reason.replace("_", " ").lower())
    if isinstance(error, ConnectionAbortedError):
        return f"not completed within {HEAD_S:.0f} s"
    return error.strerror or "the client closed the connection"
