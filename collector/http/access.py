"""Credentials and certificates for an HTTP server, and TLS files in PEM format."""

import re
import ssl
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from collector.http.failures import Hint

CheckPeer = Callable[[str, int], str]
"""Returns why nothing may be sent to the server at this IP address and port; "" if it may."""
HIDDEN = "***"
"""Replaces secrets in messages and output."""
# An invalid password may contain any character, so all is masked unless a host and a port end before the @.
_HOST = r"(?:[^@:/?#\[\]]*|\[[^@/?#\[\]]*\])(?::\d{0,5})?"
_CREDENTIALS = re.compile(rf"(?<=//)(?!{_HOST}(?:[/?#]|\Z)).*(?=@)", re.DOTALL)


def masked_url(url: str) -> str:
    """Return a URL with its credentials masked: all that precedes its last @, unless that is in the path or query."""
    return _CREDENTIALS.sub(HIDDEN, url)


def is_this_machine(host: str) -> bool:
    """Return whether a URL's host is localhost or a loopback address."""
    try:
        address = ip_address(host)
    except ValueError:
        return host.lower().rstrip(".") == "localhost"
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


class AccessError(ValueError):
    """Credentials or certificate files cannot be used.

    The message states the cause but names no options. `field` is the name of the invalid field of `Access`, and
    `missing` is the name of a field that must be set; each is "" if there is none.
    """

    def __init__(self, cause: str, field: str = "", missing: str = "") -> None:
        super().__init__(cause)
        self.field, self.missing = field, missing

    def message(self, names: Mapping[str, str]) -> str:
        """Return the cause with the caller's name for the field; `names` maps "ca" to "--jolokia-ca", for example."""
        if self.missing:
            return f"{self} (hint: use {names[self.missing]})"
        return f"{self} ({names[self.field]})" if self.field else str(self)


@dataclass(frozen=True)
class Access:
    """Credentials and certificates for an HTTP server; all fields are empty for a server that requires none.

    user, password   user name and password for HTTP basic authentication.
    ca               PEM file with the certificate authorities to trust instead of the system's.
    certificate      PEM file with the client certificate.
    key              PEM file with the certificate's unencrypted key; None if the certificate file contains it.
    hint             returns advice for a failure, in the caller's terms.
    check_peer       decides whether the server may receive anything; None if the user has named its address.
    """

    user: str = ""
    password: str = field(default="", repr=False)
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    hint: Hint = field(default=lambda _reason: "", repr=False, compare=False, kw_only=True)
    check_peer: CheckPeer | None = field(default=None, repr=False, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        """Raise AccessError if a field is invalid, or requires another field that is missing."""
        if ":" in self.user:
            raise AccessError("the user name must not contain a colon", "user")
        if self.password and not self.user:
            raise AccessError("the password requires a user name", missing="user")
        if self.key and not self.certificate:
            raise AccessError("the key requires a certificate", missing="certificate")

    @property
    def headers(self) -> Mapping[str, str]:
        """The HTTP headers that authenticate the user; empty if there is no user."""
        return {"Authorization": f"Basic {self._token}"} if self.user else {}

    @property
    def _token(self) -> str:
        return b64encode(f"{self.user}:{self.password}".encode()).decode()

    @property
    def _secrets(self) -> tuple[str, ...]:
        return (self._token, self.password) if self.user else ()

    def hide(self, text: str) -> str:
        """Return `text` with the password and Basic token masked, because a server's error message may repeat them."""
        for secret in filter(None, self._secrets):
            text = text.replace(secret, HIDDEN)
        return text


def client_context(access: Access) -> ssl.SSLContext:
    """Return the TLS context for connections with `access`. Raises AccessError if a file cannot be used."""
    if access.ca is None:
        context = ssl.create_default_context()
    else:
        with _loading_authorities(access.ca):
            context = ssl.create_default_context(cafile=access.ca)
    # Accept a `ca` that contains the server's own certificate instead of an authority's, and accept certificates made
    # by Java's keytool, which lack extensions that the default context has required since Python 3.13.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if access.certificate is not None:
        load_certificate(context, access.certificate, access.key)
    return context


def load_authorities(context: ssl.SSLContext, ca: Path) -> None:
    """Trust the certificate authorities in `ca`. Raises AccessError if the file cannot be used."""
    with _loading_authorities(ca):
        context.load_verify_locations(ca)


def load_certificate(context: ssl.SSLContext, certificate: Path, key: Path | None) -> None:
    """Use a certificate and its unencrypted key; without `key`, the key is in the certificate's file.

    Raises AccessError if a file cannot be used.
    """

    def no_prompt() -> str:
        raise AccessError(f"{key or certificate}: the key is encrypted; casstat needs an unencrypted one", "key")

    _require_file(certificate, "certificate")
    if key is not None:
        _require_file(key, "key")
    try:
        context.load_cert_chain(certificate, key, no_prompt)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise AccessError(
                f"{key or certificate}: the key does not match the certificate {certificate}", "key"
            ) from None
        if key is None:
            cause = f"{certificate}: does not contain a certificate and its key in PEM format"
        else:
            cause = f"{certificate} or {key}: not in PEM format"
        raise AccessError(cause, "certificate", missing="" if key else "key") from None
    except OSError as error:
        raise AccessError(f"{key or certificate}: {error.strerror}", "key") from None


@contextmanager
def _loading_authorities(ca: Path) -> Iterator[None]:
    _require_file(ca, "ca")
    try:
        yield
    except ssl.SSLError:
        raise AccessError(f"{ca}: not a certificate in PEM format", "ca") from None
    except OSError as error:
        raise AccessError(f"{ca}: {error.strerror}", "ca") from None


def _require_file(path: Path, field: str) -> None:
    """Raise AccessError unless `path` is a readable regular file, because OpenSSL's errors do not name the file."""
    try:
        if path.exists() and not path.is_file():
            raise AccessError(f"{path}: not a file", field)
        path.open("rb").close()
    except OSError as error:
        raise AccessError(f"{path}: {error.strerror}", field) from None
    except ValueError as error:
        if isinstance(error, AccessError):
            raise
        raise AccessError(f"{path!s}: not a valid path", field) from None
