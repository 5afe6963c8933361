"""Failures of HTTP requests: a typed reason for callers, and one line of text for users.

The text states the cause. The caller's `Hint` maps a `Reason` to advice such as "use --jolokia-user".
"""

import http.client
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from collector.printable import count_text, one_line

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


def connection_failure(error: OSError) -> Failure:
    """Return the `Failure` that describes a system error, such as a refused connection."""
    if isinstance(error, socket.gaierror):
        return Failure(one_line(f"cannot resolve the host name: {error.strerror}"))
    reason = Reason.CONNECTION_REFUSED if isinstance(error, ConnectionRefusedError) else Reason.OTHER
    return Failure(one_line(error.strerror or error), reason)


def tls_failure(error: ssl.SSLError, host: str, ca: Path | None = None, certificate: Path | None = None) -> Failure:
    """Return the `Failure` for a TLS error; `ca` and `certificate` are the files in use."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _certificate_failure(error, host, ca)
    openssl_reason = error.reason or ""
    if openssl_reason in NO_TLS:
        return Failure("the server does not speak TLS", Reason.PLAIN_HTTP)
    refused = client_certificate_failure(certificate)
    if isinstance(error, ssl.SSLEOFError):
        return Failure(
            f"connection closed during the TLS handshake: {refused.text}, or may not use TLS", refused.reason
        )
    if "ALERT" in openssl_reason and any(word in openssl_reason for word in CLIENT_CERTIFICATE_ALERTS):
        return refused
    return Failure(
        one_line(f"no TLS connection: {openssl_reason.replace('_', ' ').lower() or error.strerror or error}")
    )


def client_certificate_failure(certificate: Path | None) -> Failure:
    """Return the `Failure` for a server that may have rejected `certificate` or, if it is None, may require one."""
    if certificate is not None:
        text = f"the server may have rejected the client certificate {certificate}"
        return Failure(text, Reason.CLIENT_CERTIFICATE_REJECTED)
    return Failure("the server may require a client certificate", Reason.CLIENT_CERTIFICATE_REQUIRED)


def http_failure(error: http.client.HTTPException) -> Failure:
    """Return the `Failure` for a response that is incomplete or is not HTTP."""
    if isinstance(error, http.client.IncompleteRead):
        return Failure(f"response truncated after {count_text(len(error.partial), 'byte')}")
    if TLS_ALERT in str(error):
        return Failure("the server speaks TLS", Reason.TLS_REQUIRED)
    return Failure(f"not an HTTP response ({type(error).__name__})")


def _certificate_failure(error: ssl.SSLCertVerificationError, host: str, ca: Path | None) -> Failure:
    code = error.verify_code
    if code == EXPIRED:
        return Failure("the server's certificate has expired, or this host's clock is wrong", Reason.CERTIFICATE_DATES)
    if code == NOT_YET_VALID:
        text = "the server's certificate is not valid yet, or this host's clock is wrong"
        return Failure(text, Reason.CERTIFICATE_DATES)
    if code in WRONG_HOST_CODES:
        return Failure(f"the server's certificate is not valid for {one_line(host)}", Reason.WRONG_HOST)
    if code in UNKNOWN_AUTHORITY_CODES:
        authority = f"by an authority in {ca}" if ca else "by a trusted authority"
        return Failure(f"the server's certificate is not signed {authority}", Reason.UNKNOWN_AUTHORITY)
    return Failure(one_line(f"the server's certificate is not trusted: {error.verify_message}"))
