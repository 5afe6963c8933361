"""TLS to a store: whom to trust, what to show, and what it means when that fails."""

import ssl

from collector.http.failures import EXPIRED, NO_TLS, NOBODYS, NOT_YET, OTHER_HOST
from collector.printable import one_line
from exporters.sinks.parts.sink_url import Target
from exporters.sinks.sink import SinkUrlError

CA, CERTIFICATE, KEY = PARAMETERS = ("ca_file", "cert_file", "key_file")


def context_of(target: Target) -> ssl.SSLContext | None:
    """Return what connections are made with; None for a store without TLS. Raises SinkUrlError."""
    if not target.tls:
        if odd := [name for name in PARAMETERS if name in target.given]:
            raise SinkUrlError(f"{target.name}: {odd[0]} is for TLS: give a URL with +https")
        return None
    if KEY in target.given and CERTIFICATE not in target.given:
        raise SinkUrlError(f"{target.name}: {KEY} needs {CERTIFICATE}")
    for name in PARAMETERS:
        _require_file(target, name)
    try:
        context = ssl.create_default_context(cafile=target.file(CA) if CA in target.given else None)
    except (ssl.SSLError, OSError):
        raise SinkUrlError(f"{target.file(CA)}: holds no certificate in PEM form ({CA})") from None
    # The same on every Python, and for what Jolokia's own certificates are trusted: see `collector.http.tls`.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if CERTIFICATE in target.given:
        _show(context, target)
    return context


def why_not(error: ssl.SSLError, host: str) -> str:
    """Return in a line what it means that there is no TLS connection."""
    if isinstance(error, ssl.SSLCertVerificationError):
        code = error.verify_code
        if code == EXPIRED:
            return "its certificate has expired, or this machine's clock is wrong"
        if code == NOT_YET:
            return "its certificate is not valid yet, or this machine's clock is wrong"
        if code in OTHER_HOST:
            return f"its certificate is not for {one_line(host)}"
        if code in NOBODYS:
            return f"its certificate is signed by nobody known here: give the authority with {CA}=PATH"
        return one_line(f"its certificate is not trusted: {error.verify_message}")
    if error.reason in NO_TLS:
        return "it speaks no TLS: give a URL with +http"
    return one_line(f"no TLS connection: {(error.reason or str(error)).replace('_', ' ').lower()}")


def _show(context: ssl.SSLContext, target: Target) -> None:
    def no_prompt() -> str:
        raise SinkUrlError(f"{key or certificate}: the key is encrypted, and casstat asks nobody: give one that is not")

    certificate = target.file(CERTIFICATE)
    key = target.file(KEY) if KEY in target.given else None
    try:
        context.load_cert_chain(certificate, key, no_prompt)
    except (ssl.SSLError, OSError):
        raise SinkUrlError(f"{certificate}: holds no certificate whose key is there or in {KEY}, in PEM form") from None


def _require_file(target: Target, name: str) -> None:
    if name not in target.given:
        return
    path = target.file(name)
    try:
        if path.exists() and not path.is_file():
            raise SinkUrlError(f"{path}: is no file ({name})")
        path.open("rb").close()
    except (OSError, ValueError) as error:
        if isinstance(error, SinkUrlError):
            raise
        raise SinkUrlError(f"{path}: {getattr(error, 'strerror', None) or 'is no path'} ({name})") from None
