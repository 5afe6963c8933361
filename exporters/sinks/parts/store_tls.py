"""TLS for connections to a store: the URL parameters that configure it, and hints that name them."""

import ssl

from collector.http.access import Access, AccessError, client_context
from collector.http.failures import Reason
from exporters.sinks.parts.sink_url import Target
from exporters.sinks.sink import SinkUrlError

CA, CERTIFICATE, KEY = PARAMETERS = ("ca_file", "cert_file", "key_file")
NAMES = {"ca": CA, "certificate": CERTIFICATE, "key": KEY}
HINTS = {
    Reason.UNKNOWN_AUTHORITY: f"specify the CA certificate with {CA}=PATH",
    Reason.PLAIN_HTTP: "use a URL with +http",
    Reason.CLIENT_CERTIFICATE_REQUIRED: f"use {CERTIFICATE}=PATH and {KEY}=PATH",
    Reason.CLIENT_CERTIFICATE_REJECTED: f"check {CERTIFICATE}",
}


def access_of(target: Target) -> Access:
    """Return the certificate files for connections to a store, and the hints for failed ones. Raises SinkUrlError."""
    if not target.tls and (odd := [name for name in PARAMETERS if name in target.parameters]):
        raise SinkUrlError(f"{target.name}: {odd[0]} requires TLS (hint: use a URL with +https)")
    if KEY in target.parameters and CERTIFICATE not in target.parameters:
        raise SinkUrlError(f"{target.name}: {KEY} requires {CERTIFICATE}")
    ca, certificate, key = (target.file(name) if name in target.parameters else None for name in PARAMETERS)
    return Access(ca=ca, certificate=certificate, key=key, hint=lambda reason: HINTS.get(reason, ""))


def context_of(target: Target, access: Access) -> ssl.SSLContext | None:
    """Return the TLS context for connections to a store; None for a store without TLS. Raises SinkUrlError."""
    try:
        return client_context(access) if target.tls else None
    except AccessError as error:
        raise SinkUrlError(error.message(NAMES)) from None
