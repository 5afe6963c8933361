"""Finds the cause of a failed HTTP request from an exception, a closed connection or an error status."""

import http.client
import ssl
from dataclasses import dataclass

from collector.http.access import Access
from collector.http.deadline_connection import UntrustedServerError
from collector.http.failures import (
    Failure,
    Reason,
    client_certificate_failure,
    connection_failure,
    http_failure,
    timeout_failure,
    tls_failure,
)
from collector.printable import one_line


class ConnectionClosedError(Exception):
    """The server closed the connection before it responded."""


@dataclass(frozen=True)
class Diagnostics:
    """Interprets failures of requests sent to `host` with `access`, over TLS if `tls` is set."""

    host: str
    tls: bool
    access: Access

    def of_error(self, error: Exception, *, handshaking: bool) -> Failure:
        """Return the `Failure` for an exception; `handshaking` states whether TLS was being negotiated.

        Raises ConnectionClosedError if the server has closed the connection.
        """
        if isinstance(error, UntrustedServerError):
            return Failure(f"not trusted: {error}", Reason.UNTRUSTED)
        if isinstance(error, TimeoutError):
            if handshaking:
                return Failure("TLS handshake timed out", Reason.PLAIN_HTTP_SUSPECTED)
            return timeout_failure()
        if isinstance(error, ConnectionResetError | BrokenPipeError):
            raise ConnectionClosedError from error
        if isinstance(error, http.client.HTTPException):
            return http_failure(error)
        if isinstance(error, ssl.SSLError):
            return tls_failure(error, self.host, self.access.ca, self.access.certificate)
        return connection_failure(error) if isinstance(error, OSError) else Failure(one_line(error))

    def of_closed_connection(self, *, answered: bool) -> Failure:
        """Return the `Failure` for a closed connection; `answered` states whether the server has ever responded."""
        text = "connection closed without a response"
        if answered:
            return Failure(text)
        if not self.tls:
            return Failure(text, Reason.TLS_SUSPECTED)
        refused = client_certificate_failure(self.access.certificate)
        return Failure(f"{text}: {refused.text}", refused.reason)

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
            refused = client_certificate_failure(self.access.certificate)
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
