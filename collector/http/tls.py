"""TLS to a Jolokia: whom to trust, and what to show."""

import ssl
from pathlib import Path

from collector.jolokia.access import Access, AccessError


def client_context(access: Access) -> ssl.SSLContext:
    """Return what connections to Jolokia are made with. Raises AccessError when a file cannot be used."""
    ca = access.ca
    if ca is not None:
        _require_file(ca, "--jolokia-ca")
    try:
        context = ssl.create_default_context(cafile=ca)
    except ssl.SSLError:
        raise AccessError(f"{ca}: holds no certificate in PEM form (--jolokia-ca)") from None
    except OSError as error:
        raise AccessError(f"{ca}: {error.strerror} (--jolokia-ca)") from None
    # The same on every Python: what is trusted may be the server's own certificate, and, as from 3.13 on it would
    # not, lack the extensions that Java's keytool leaves out.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if access.certificate is not None:
        _show(context, access.certificate, access.key)
    return context


def _show(context: ssl.SSLContext, certificate: Path, key: Path | None) -> None:
    def no_prompt() -> str:
        raise AccessError(f"{key or certificate}: the key is encrypted, and casstat asks nobody: give one that is not")

    _require_file(certificate, "--jolokia-cert")
    if key is not None:
        _require_file(key, "--jolokia-key")
    try:
        context.load_cert_chain(certificate, key, no_prompt)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise AccessError(f"{key or certificate}: the key is not that of the certificate {certificate}") from None
        hint = "" if key else ", or its key stands elsewhere: give --jolokia-key"
        raise AccessError(f"{certificate}: holds no certificate with a key in PEM form{hint}") from None
    except OSError as error:
        raise AccessError(f"{key or certificate}: {error.strerror}") from None


def _require_file(path: Path, flag: str) -> None:
    """Raise AccessError unless there is a plain file that can be read: the system's own words name none."""
    if path.exists() and not path.is_file():
        raise AccessError(f"{path}: is no file ({flag})")
    try:
        path.open("rb").close()
    except OSError as error:
        raise AccessError(f"{path}: {error.strerror} ({flag})") from None
