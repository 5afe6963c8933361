"""TLS contexts from the web configuration, which is reloaded, with its certificates, when a file changes."""

import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collector.file_access import file_errors
from collector.http.access import AccessError, load_authorities, load_certificate
from exporters.api.sockets import HEAD_S
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
