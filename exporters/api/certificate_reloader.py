"""The web configuration in force: its file, and the certificates that it names, are read again when they change."""

import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exporters.api.web_access import LARGEST_BYTES, WebConfig
from exporters.api.web_tls import IF_GIVEN, NO_CERTIFICATE, REQUIRED, Tls
from exporters.api.web_values import WebConfigError

AGAIN_S = 5.0
_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_ASKED = {NO_CERTIFICATE: ssl.CERT_NONE, IF_GIVEN: ssl.CERT_OPTIONAL, REQUIRED: ssl.CERT_REQUIRED}
_NAMED = ("DNS", "email", "IP Address", "URI")

_State = tuple[tuple[Path, tuple[int, ...] | None], ...]


def server_context(tls: Tls) -> ssl.SSLContext:
    """Return what connections are accepted with. Raises WebConfigError when a file cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version, context.maximum_version = _VERSIONS[tls.min_version], _VERSIONS[tls.max_version]
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE | ssl.OP_NO_RENEGOTIATION
    _show(context, tls)
    if tls.client_ca_file is not None:
        _require(tls.client_ca_file)
        try:
            context.load_verify_locations(tls.client_ca_file)
        except ssl.SSLError:
            raise WebConfigError(f"{tls.client_ca_file}: holds no certificate in PEM form (client_ca_file)") from None
        except OSError as error:
            raise WebConfigError(f"{tls.client_ca_file}: {error.strerror}") from None
    context.verify_mode = _ASKED[tls.client_auth]
    try:
        context.set_ciphers(":".join(tls.ciphers))
        if tls.curve:
            context.set_ecdh_curve(tls.curve)
    except (ssl.SSLError, ValueError):
        raise WebConfigError("cipher_suites, curve_preferences: this machine's OpenSSL has none of them") from None
    return context


def named(certificate: Any) -> Iterator[str]:
    """Yield the names that a certificate is made out for, as `getpeercert` returns it."""
    for kind, name in (certificate or {}).get("subjectAltName", ()):
        if kind in _NAMED:
            yield name


def _show(context: ssl.SSLContext, tls: Tls) -> None:
    def no_prompt() -> str:
        raise WebConfigError(f"{tls.key_file}: the key is encrypted, and nobody is asked: give one that is not")

    _require(tls.cert_file)
    _require(tls.key_file)
    try:
        context.load_cert_chain(tls.cert_file, tls.key_file, no_prompt)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise WebConfigError(f"{tls.key_file}: the key is not that of the certificate {tls.cert_file}") from None
        raise WebConfigError(f"{tls.cert_file}, {tls.key_file}: no certificate and key in PEM form") from None
    except OSError as error:
        raise WebConfigError(f"{tls.cert_file}, {tls.key_file}: {error.strerror}") from None


def _require(path: Path) -> None:
    try:
        if not path.is_file():
            raise WebConfigError(f"{path}: is no file" if path.exists() else f"{path}: there is no such file")
        path.open("rb").close()
    except OSError as error:
        raise WebConfigError(f"{path}: {error.strerror}") from None


class Current(ssl.SSLContext):
    """Accepts each connection with the context that is in force at that time."""

    _now: Callable[[], ssl.SSLContext]

    @classmethod
    def following(cls, now: Callable[[], ssl.SSLContext]) -> "Current":
        """Return a context that asks `now` for the one in force."""
        made = cls(ssl.PROTOCOL_TLS_SERVER)
        made._now = now
        return made

    def wrap_bio(self, *arguments: Any, **more: Any) -> ssl.SSLObject:
        """As that of the context in force."""
        return self._now().wrap_bio(*arguments, **more)


@dataclass(frozen=True)
class _Read:
    """What was read, and the state in which its files were."""

    config: WebConfig
    context: ssl.SSLContext | None
    state: _State


class Access:
    """Who may use the API at this time; belongs to one thread once it is made."""

    def __init__(
        self, file: Path | None, say: Callable[[str], None], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """Read the file; without one everybody may, by plain HTTP. Raises WebConfigError."""
        self._file = file
        self._say = say
        self._monotonic = monotonic
        self._read = _Read(WebConfig(), None, ()) if file is None else _reading(file)
        self._seen = self._read.state
        self._wrong = ""
        self._again_s = 0.0

    @property
    def config(self) -> WebConfig:
        """What is in force."""
        self._look()
        return self._read.config

    def context(self) -> ssl.SSLContext | None:
        """Return what connections are accepted with from now on; None for plain HTTP."""
        plain = self._read.context
        return None if plain is None else Current.following(lambda: self._context() or plain)

    def _context(self) -> ssl.SSLContext | None:
        self._look()
        return self._read.context

    def _look(self) -> None:
        """Read the files again if one of them has changed; what cannot be used is said once, and changes nothing."""
        if self._file is None:
            return
        state, now_s = _state(path for path, _ in self._seen), self._monotonic()
        # What is wrong may be mended in a file that was not named before.
        if state == self._seen and not (self._wrong and now_s >= self._again_s):
            return
        self._seen, self._again_s = state, now_s + AGAIN_S
        try:
            read = _reading(self._file)
            if (read.context is None) != (self._read.context is None):
                raise WebConfigError(f"{self._file}: TLS is switched on and off only when the program is started")
        except WebConfigError as error:
            if str(error) != self._wrong:
                self._say(f"{error}: what was read before stays in force")
            self._wrong = str(error)
            return
        self._read, self._seen, self._wrong = read, read.state, ""
        self._say(f"{self._file}: read again, for it or a certificate has changed")


def _reading(file: Path) -> _Read:
    """Return what the file says, and the context made from that. Raises WebConfigError."""
    # Whatever changes while it is read has another state afterwards.
    before = _state([file])
    try:
        with file.open("rb") as stream:
            text = stream.read(LARGEST_BYTES + 1).decode()
    except OSError as error:
        raise WebConfigError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise WebConfigError(f"{file}: is no UTF-8 text") from None
    # Only where there is such a file: YAML takes memory.
    from exporters.api.web_config import parsed

    config = parsed(text, file)
    if config.tls is None:
        return _Read(config, None, before)
    tls = config.tls
    state = (*before, *_state(path for path in (tls.cert_file, tls.key_file, tls.client_ca_file) if path))
    return _Read(config, server_context(tls), state)


def _state(paths: Iterable[Path]) -> _State:
    return tuple((path, _of(path)) for path in paths)


def _of(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
