"""The TLS section of the web configuration, including client certificates."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from exporters.api.web_access import (
    CIPHERS,
    DEFAULT_CIPHERS,
    IF_GIVEN,
    NO_CERTIFICATE,
    REQUIRED,
    VERSIONS,
    Tls,
    WebConfigError,
)
from exporters.api.web_values import check_flag, one_of, section, text_at, texts_at

_UNVERIFIED = ("RequestClientCert", "RequireClientCert", "RequireAnyClientCert")
# Maps Go's names for elliptic curves, which the format uses, to OpenSSL's names.
CURVES = {"CurveP256": "prime256v1", "CurveP384": "secp384r1", "CurveP521": "secp521r1", "X25519": "X25519"}
# As in Go, TLS 1.3 cipher suites cannot be configured; if they are listed with TLS 1.2 suites, they are ignored.
_CIPHERS_13 = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")


_TLS = "tls_server_config"
_TLS_KEYS = (
    *("cert", "key", "client_ca", "cert_file", "key_file", "client_auth_type", "client_ca_file"),
    *("client_allowed_sans", "min_version", "max_version", "cipher_suites", "curve_preferences"),
    "prefer_server_cipher_suites",
)


def tls_of(content: Any, folder: Path) -> Tls | None:
    """Return the section's settings, or None if it is empty; paths are relative to `folder`. Raises WebConfigError."""
    section_values = section(content, _TLS, _TLS_KEYS)
    if not section_values:
        return None
    for key in ("cert", "key", "client_ca"):
        if section_values.get(key):
            raise WebConfigError(f"{_TLS}: {key}: not supported inline (hint: put it into a file and use {key}_file)")
    files = {key: text_at(section_values, _TLS, key) for key in ("cert_file", "key_file", "client_ca_file")}
    for key in ("cert_file", "key_file"):
        if not files[key]:
            raise WebConfigError(f"{_TLS}: {key} is missing")
    # The value is ignored, because the client's order is not supported and the server's order is just as safe.
    check_flag(section_values, _TLS, "prefer_server_cipher_suites")
    least, most = (
        _version(section_values, "min_version", VERSIONS[0]),
        _version(section_values, "max_version", VERSIONS[-1]),
    )
    if least > most:
        raise WebConfigError(f"{_TLS}: min_version is above max_version")
    policy, sans = _clients(section_values, files["client_ca_file"])
    return Tls(
        folder / files["cert_file"],
        folder / files["key_file"],
        policy,
        folder / files["client_ca_file"] if files["client_ca_file"] else None,
        sans,
        least,
        most,
        _ciphers(section_values),
        _curve(section_values),
    )


def _clients(section_values: Mapping[str, Any], authority: str) -> tuple[str, tuple[str, ...]]:
    """Return the client certificate policy and the certificate names that it accepts; () accepts all names."""
    policy = text_at(section_values, _TLS, "client_auth_type") or NO_CERTIFICATE
    if policy in _UNVERIFIED:
        raise WebConfigError(f"{_TLS}: client_auth_type: {policy} does not verify certificates (hint: use {REQUIRED})")
    policy = one_of(policy, (NO_CERTIFICATE, IF_GIVEN, REQUIRED), f"{_TLS}: client_auth_type")
    if authority and policy == NO_CERTIFICATE:
        raise WebConfigError(f"{_TLS}: client_ca_file: has no effect (hint: set client_auth_type: {REQUIRED})")
    if not authority and policy != NO_CERTIFICATE:
        raise WebConfigError(f"{_TLS}: client_auth_type: {policy} needs client_ca_file")
    sans = texts_at(section_values, _TLS, "client_allowed_sans")
    if sans is not None and policy != REQUIRED:
        raise WebConfigError(f"{_TLS}: client_allowed_sans needs client_auth_type: {REQUIRED}")
    if sans == ():
        raise WebConfigError(f"{_TLS}: client_allowed_sans: an empty list admits no clients")
    return policy, sans or ()


def _version(section_values: Mapping[str, Any], key: str, default: str) -> str:
    version = text_at(section_values, _TLS, key) or default
    if version in ("TLS10", "TLS11"):
        raise WebConfigError(f"{_TLS}: {key}: {version} is insecure and not supported (hint: use TLS12 or TLS13)")
    return one_of(version, VERSIONS, f"{_TLS}: {key}")


def _ciphers(section_values: Mapping[str, Any]) -> tuple[str, ...]:
    names = texts_at(section_values, _TLS, "cipher_suites") or ()
    for name in names:
        one_of(name, (*CIPHERS, *_CIPHERS_13), f"{_TLS}: cipher_suites")
    names_tls12 = tuple(CIPHERS[name] for name in names if name in CIPHERS)
    if names and not names_tls12:
        hint = "to allow only TLS 1.3, remove cipher_suites and set min_version: TLS13"
        raise WebConfigError(f"{_TLS}: cipher_suites: no TLS 1.2 cipher suite is listed (hint: {hint})")
    return names_tls12 or DEFAULT_CIPHERS


def _curve(section_values: Mapping[str, Any]) -> str:
    names = texts_at(section_values, _TLS, "curve_preferences") or ()
    if len(names) > 1:
        raise WebConfigError(f"{_TLS}: curve_preferences: only one curve is supported")
    return CURVES[one_of(names[0], tuple(CURVES), f"{_TLS}: curve_preferences")] if names else ""
