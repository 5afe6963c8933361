"""Credentials and certificates for an HTTP server, and why a request to it failed.

A failure has a typed reason for callers, and one line of text for users, which states the cause. The caller's `Hint`
maps a `Reason` to advice such as "use --jolokia-user".
"""

import http.client
import re
import socket
import ssl
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import ip_address
from pathlib import Path

from collector.printable import count_text, one_line

CheckPeer = Callable[[str, int], str]
"""Returns why nothing may be sent to the server at this IP address and port; "" if it may."""
HIDDEN = "***"
"""Replaces secrets in messages and output."""
# An invalid password may contain any character, so all is masked unless a host and a port end before the @.
_HOST = r"(?:[^@:/?#\[\]]*|\[[^@/?#\[\]]*\])(?::\d{0,5})?"
_CREDENTIALS = re.compile(rf"(?<=//)(?!{_HOST}(?:[/?#]|\Z)).*(?=@)", re.DOTALL)
# OpenSSL's error codes for invalid certificates (X509_V_ERR_…).
NOT_YET_VALID, EXPIRED = 9, 10
UNKNOWN_AUTHORITY_CODES = (2, 18, 19, 20, 21, 27)
WRONG_HOST_CODES = (62, 64)
# The reasons that OpenSSL gives when the server's first bytes are not TLS.
NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
# Words in OpenSSL's names for the TLS alerts sent to a client whose certificate is missing or rejected.
CLIENT_CERTIFICATE_ALERTS = ("CERTIFICATE", "UNKNOWN_CA", "HANDSHAKE_FAILURE", "ACCESS_DENIED")
# The first bytes of a TLS alert, as quoted in http.client's exceptions.
TLS_ALERT = r"\x15\x03"
# With these errors, or by ending the stream before a response, a server closes a connection.
CLOSED = (ConnectionResetError, BrokenPipeError)


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


class Reason(Enum):
    """Causes that a caller can give advice for."""

    OTHER = "other"
    CONNECTION_REFUSED = "connection refused"
    TIMED_OUT = "timed out"
    CREDENTIALS_REQUIRED = "credentials required"
    CREDENTIALS_REJECTED = "credentials rejected"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not found"
    REDIRECTED = "redirected"
    UNEXPECTED_RESPONSE = "unexpected response"
    TLS_REQUIRED = "TLS required"
    TLS_SUSPECTED = "TLS suspected"
    PLAIN_HTTP = "plain HTTP"
    PLAIN_HTTP_SUSPECTED = "plain HTTP suspected"
    UNKNOWN_AUTHORITY = "unknown authority"
    WRONG_HOST = "wrong host"
    CERTIFICATE_DATES = "certificate dates"
    CLIENT_CERTIFICATE_REQUIRED = "client certificate required"
    CLIENT_CERTIFICATE_REJECTED = "client certificate rejected"
    NOT_A_PROXY = "not a proxy"
    TARGET_CREDENTIALS = "target credentials"
    TARGET_FORBIDDEN = "target forbidden"
    TARGET_UNREACHABLE = "target unreachable"
    UNTRUSTED = "untrusted"


Hint = Callable[[Reason], str]
"""Returns advice for a reason, or "" if there is none."""


@dataclass(frozen=True)
class Failure:
    """The cause of a failed request; `text` is one line without advice."""

    text: str
    reason: Reason = Reason.OTHER

    def message(self, hint: Hint) -> str:
        """Return the text, followed by advice if `hint` returns any."""
        advice = hint(self.reason)
        return f"{self.text} (hint: {advice})" if advice else self.text


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
    except AccessError:
        raise
    except ValueError:
        raise AccessError(f"{path}: not a valid path", field) from None


class UntrustedServerError(OSError):
    """The server that accepted the connection is not trusted, and nothing was sent to it."""


def connection_failure(error: OSError) -> Failure:
    """Return the `Failure` that describes a system error, such as a refused connection."""
    if isinstance(error, socket.gaierror):
        return Failure(one_line(f"cannot resolve the host name: {error.strerror}"))
    reason = Reason.CONNECTION_REFUSED if isinstance(error, ConnectionRefusedError) else Reason.OTHER
    return Failure(one_line(error.strerror or error), reason)


def _http_failure(error: http.client.HTTPException) -> Failure:
    """Return the `Failure` for a response that is incomplete or is not HTTP."""
    if isinstance(error, http.client.IncompleteRead):
        return Failure(f"response truncated after {count_text(len(error.partial), 'byte')}")
    if TLS_ALERT in str(error):
        return Failure("the server speaks TLS", Reason.TLS_REQUIRED)
    return Failure(f"not an HTTP response ({type(error).__name__})")


@dataclass(frozen=True)
class Diagnostics:
    """Interprets failures of requests sent to `host` with `access`, over TLS if `tls` is set."""

    host: str
    tls: bool
    access: Access

    def of_error(self, error: Exception, *, handshaking: bool = False, answered: bool = False) -> Failure:
        """Return the `Failure` for an exception.

        handshaking   whether TLS was being negotiated.
        answered      whether the server has ever responded.
        """
        if isinstance(error, UntrustedServerError):
            return Failure(f"not trusted: {error}", Reason.UNTRUSTED)
        if isinstance(error, TimeoutError):
            if handshaking:
                return Failure("TLS handshake timed out", Reason.PLAIN_HTTP_SUSPECTED)
            return Failure("no complete response in time", Reason.TIMED_OUT)
        if isinstance(error, CLOSED):
            return self._of_closed_connection(answered=answered)
        if isinstance(error, http.client.HTTPException):
            return _http_failure(error)
        if isinstance(error, ssl.SSLCertVerificationError):
            return self._of_certificate(error)
        if isinstance(error, ssl.SSLError):
            return self._of_tls(error)
        return connection_failure(error) if isinstance(error, OSError) else Failure(one_line(error))

    def _of_closed_connection(self, *, answered: bool) -> Failure:
        text = "connection closed without a response"
        if answered:
            return Failure(text)
        if not self.tls:
            return Failure(text, Reason.TLS_SUSPECTED)
        refused = self._refused_client()
        return Failure(f"{text}: {refused.text}", refused.reason)

    def of_response(self, response: http.client.HTTPResponse) -> Failure:
        """Return the `Failure` for a response with a status other than 200."""
        return self.of_status(response.status, response.reason, response.headers.get("Location"))

    def of_status(self, status: int, phrase: str, location: str | None = None) -> Failure:
        """Return the `Failure` for a status other than 200; `location` is a redirect's target."""
        user = self.access.user
        if status == http.client.UNAUTHORIZED:
            if user:
                text = f"HTTP 401: credentials of user '{one_line(user)}' rejected"
                return Failure(text, Reason.CREDENTIALS_REJECTED)
            return Failure("HTTP 401: credentials required", Reason.CREDENTIALS_REQUIRED)
        if status == http.client.FORBIDDEN:
            text = "HTTP 403: the server's policy denies this host or user"
            if not self.tls:
                return Failure(text, Reason.FORBIDDEN)
            refused = self._refused_client()
            return Failure(f"{text}, or {refused.text}", refused.reason)
        if status == http.client.NOT_FOUND:
            return Failure("HTTP 404: path not found", Reason.NOT_FOUND)
        if 300 <= status < 400:
            return Failure(f"HTTP {status}: redirect to {self.quoted(location)}", Reason.REDIRECTED)
        reason = Reason.TLS_SUSPECTED if status == http.client.BAD_REQUEST and not self.tls else Reason.OTHER
        return Failure(f"HTTP {status} {self.quoted(phrase)}", reason)

    def quoted(self, text: object) -> str:
        """Return text from a server for use in a message: on one line, with secrets masked."""
        return one_line(self.access.hide(str(text)))

    def _of_tls(self, error: ssl.SSLError) -> Failure:
        openssl_reason = error.reason or ""
        if openssl_reason in NO_TLS:
            return Failure("the server does not speak TLS", Reason.PLAIN_HTTP)
        refused = self._refused_client()
        if isinstance(error, ssl.SSLEOFError):
            text = f"connection closed during the TLS handshake: {refused.text}, or may not use TLS"
            return Failure(text, refused.reason)
        if "ALERT" in openssl_reason and any(word in openssl_reason for word in CLIENT_CERTIFICATE_ALERTS):
            return refused
        cause = openssl_reason.replace("_", " ").lower() or error.strerror or error
        return Failure(one_line(f"no TLS connection: {cause}"))

    def _refused_client(self) -> Failure:
        """Return the failure of a server that may reject the client certificate or, if there is none, require one."""
        if self.access.certificate is not None:
            text = f"the server may have rejected the client certificate {self.access.certificate}"
            return Failure(text, Reason.CLIENT_CERTIFICATE_REJECTED)
        return Failure("the server may require a client certificate", Reason.CLIENT_CERTIFICATE_REQUIRED)

    def _of_certificate(self, error: ssl.SSLCertVerificationError) -> Failure:
        code = error.verify_code
        if code == EXPIRED:
            text = "the server's certificate has expired, or this host's clock is wrong"
            return Failure(text, Reason.CERTIFICATE_DATES)
        if code == NOT_YET_VALID:
            text = "the server's certificate is not valid yet, or this host's clock is wrong"
            return Failure(text, Reason.CERTIFICATE_DATES)
        if code in WRONG_HOST_CODES:
            return Failure(f"the server's certificate is not valid for {one_line(self.host)}", Reason.WRONG_HOST)
        if code in UNKNOWN_AUTHORITY_CODES:
            authority = f"by an authority in {self.access.ca}" if self.access.ca else "by a trusted authority"
            return Failure(f"the server's certificate is not signed {authority}", Reason.UNKNOWN_AUTHORITY)
        return Failure(one_line(f"the server's certificate is not trusted: {error.verify_message}"))
