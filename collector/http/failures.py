"""What it means that a Jolokia did not answer as it should, and what to do: one line for people."""

import http.client
import ssl
from dataclasses import dataclass

from collector.jolokia.access import Access
from collector.printable import one_line

# OpenSSL's numbers of what is wrong with a certificate (X509_V_ERR_…).
NOT_YET, EXPIRED = 9, 10
NOBODYS = (2, 18, 19, 20, 21, 27)
OTHER_HOST = (62, 64)
# What the first bytes of something else look like to OpenSSL.
NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
# What a server says to a client without a certificate, or with one that it does not like.
UNWANTED = ("CERTIFICATE", "UNKNOWN_CA", "HANDSHAKE_FAILURE", "ACCESS_DENIED")

# How http.client shows the first bytes of a TLS alert.
ALERT = r"\x15\x03"

HTTP, HTTPS = "give an http:// URL", "give an https:// URL"


class ConnectionClosedError(Exception):
    """The other side closed before it answered."""


@dataclass(frozen=True)
class Failures:
    """What failures mean of one Jolokia: on `host`, over TLS or not, asked with `access`."""

    host: str
    tls: bool
    access: Access

    def of_error(self, error: Exception, *, greets: bool) -> str:
        """Return what an exception means; `greets` when it came while TLS began. Raises ConnectionClosedError."""
        if isinstance(error, TimeoutError):
            return f"no TLS connection in time: if it speaks none, {HTTP}" if greets else "no whole answer in time"
        if isinstance(error, ConnectionResetError | BrokenPipeError):
            raise ConnectionClosedError from error
        if isinstance(error, http.client.IncompleteRead):
            return f"the answer broke off after {len(error.partial)} bytes"
        if isinstance(error, http.client.HTTPException):
            if ALERT in str(error):
                return f"it speaks TLS: {HTTPS}"
            return f"does not speak HTTP as Jolokia does ({type(error).__name__})"
        if isinstance(error, ssl.SSLError):
            return one_line(self._of_tls(error))
        return one_line(getattr(error, "strerror", None) or error)

    def of_silence(self, *, answered: bool) -> str:
        """Return what it means that the connection was closed; `answered` when that once went well."""
        said = "closed the connection without an answer"
        if answered:
            return said
        return f"{said}: {self._unwanted() if self.tls else f'if it speaks TLS, {HTTPS}'}"

    def of_status(self, response: http.client.HTTPResponse) -> str:
        """Return what an answer means that is not Jolokia's own."""
        status, user = response.status, self.access.user
        if status == http.client.UNAUTHORIZED:
            if user:
                return f"HTTP 401: it does not take the credentials of '{one_line(user)}' (--jolokia-user)"
            return "HTTP 401: it wants credentials: give --jolokia-user and --jolokia-password-file"
        if status == http.client.FORBIDDEN:
            certificate = f", or {self._unwanted()}" if self.tls else ""
            return f"HTTP 403: its policy refuses this host or user{certificate}"
        if status == http.client.NOT_FOUND:
            return "HTTP 404: no Jolokia at this path"
        if 300 <= status < 400:
            return f"HTTP {status}: it points to {self.quoted(response.headers.get('Location'))}; give the final URL"
        hint = f" (if it speaks TLS, {HTTPS})" if status == http.client.BAD_REQUEST and not self.tls else ""
        return f"HTTP {status} {self.quoted(response.reason)}{hint}"

    def quoted(self, text: object) -> str:
        """Return what the other side said, fit for a message: without our secrets, should it repeat them."""
        return one_line(self.access.hide(str(text)))

    def _of_tls(self, error: ssl.SSLError) -> str:
        if isinstance(error, ssl.SSLCertVerificationError):
            return self._of_certificate(error)
        reason = error.reason or ""
        if reason in NO_TLS:
            return f"it speaks no TLS: {HTTP}"
        if isinstance(error, ssl.SSLEOFError):
            return f"it closed the connection while TLS began: {self._unwanted()}; if it speaks none, {HTTP}"
        if "ALERT" in reason and any(word in reason for word in UNWANTED):
            return self._unwanted()
        return f"no TLS connection: {reason.replace('_', ' ').lower() or error.strerror}"

    def _of_certificate(self, error: ssl.SSLCertVerificationError) -> str:
        if error.verify_code == EXPIRED:
            return "its certificate has expired, or this machine's clock is wrong"
        if error.verify_code == NOT_YET:
            return "its certificate is not valid yet, or this machine's clock is wrong"
        if error.verify_code in OTHER_HOST:
            return f"its certificate is not for {self.host}: give a URL with a name or address that it is for"
        if error.verify_code in NOBODYS:
            known = f"signed by {self.access.ca}" if self.access.ca else "signed by anybody known here"
            return f"its certificate is not {known}: give the authority that signed it with --jolokia-ca"
        return f"its certificate is not trusted: {error.verify_message}"

    def _unwanted(self) -> str:
        """Return why a server may not want this client."""
        if self.access.certificate is not None:
            return f"it may not accept the certificate {self.access.certificate} (--jolokia-cert)"
        return "it may want a client certificate (--jolokia-cert, --jolokia-key)"
