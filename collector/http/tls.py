"""TLS files in PEM format: trusted certificate authorities, and certificates with their keys."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from collector.http.access import Access, AccessError


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
