"""The part of the web configuration that says how TLS is spoken, and who must show a certificate."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exporters.api.web_values import WebConfigError, check_flag, one_of, section, text_at, texts_at

VERSIONS = ("TLS12", "TLS13")
NO_CERTIFICATE, IF_GIVEN, REQUIRED = "NoClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"
_UNVERIFIED = ("RequestClientCert", "RequireClientCert", "RequireAnyClientCert")
# By Go's names, which the format uses: the groups as OpenSSL calls them.
CURVES = {"CurveP256": "prime256v1", "CurveP384": "secp384r1", "CurveP521": "secp521r1", "X25519": "X25519"}
CIPHERS = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
}
# What TLS 1.2 offers unless cipher_suites names others: without CBC, whose padding has been attacked again and again.
DEFAULT_CIPHERS = tuple(openssl for name, openssl in CIPHERS.items() if "_CBC_" not in name)
# Those of TLS 1.3 are not configured in Go either: naming them changes nothing.
_CIPHERS_13 = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")


@dataclass(frozen=True)
class Tls:
    """How to speak TLS. `ciphers` (of TLS 1.2) and `curve` by OpenSSL's names; "" for the usual curves."""

    cert_file: Path
    key_file: Path
    client_auth: str = NO_CERTIFICATE
    client_ca_file: Path | None = None
    client_allowed_sans: tuple[str, ...] = ()
    min_version: str = VERSIONS[0]
    max_version: str = VERSIONS[-1]
    ciphers: tuple[str, ...] = DEFAULT_CIPHERS
    curve: str = ""


_TLS = "tls_server_config"
_TLS_KEYS = (
    *("cert", "key", "client_ca", "cert_file", "key_file", "client_auth_type", "client_ca_file"),
    *("client_allowed_sans", "min_version", "max_version", "cipher_suites", "curve_preferences"),
    "prefer_server_cipher_suites",
)


def tls_of(content: Any, folder: Path) -> Tls | None:
    """Return what the section says, None where it is empty; files are relative to `folder`. Raises WebConfigError."""
    found = section(content, _TLS, _TLS_KEYS)
    if not found:
        return None
    for key in ("cert", "key", "client_ca"):
        if found.get(key):
            raise WebConfigError(f"{_TLS}: {key}: is not taken from this file: put it into its own, as {key}_file")
    files = {key: text_at(found, _TLS, key) for key in ("cert_file", "key_file", "client_ca_file")}
    for key in ("cert_file", "key_file"):
        if not files[key]:
            raise WebConfigError(f"{_TLS}: {key} is missing")
    # A preference of the client's is not asked for: the server's is as safe.
    check_flag(found, _TLS, "prefer_server_cipher_suites")
    least, most = _version(found, "min_version", VERSIONS[0]), _version(found, "max_version", VERSIONS[-1])
    if least > most:
        raise WebConfigError(f"{_TLS}: min_version is above max_version")
    policy, sans = _clients(found, files["client_ca_file"])
    return Tls(
        folder / files["cert_file"],
        folder / files["key_file"],
        policy,
        folder / files["client_ca_file"] if files["client_ca_file"] else None,
        sans,
        least,
        most,
        _ciphers(found),
        _curve(found),
    )


def _clients(found: Mapping[str, Any], authority: str) -> tuple[str, tuple[str, ...]]:
    """Return what is asked of clients, and the names of which their certificate must have one."""
    policy = text_at(found, _TLS, "client_auth_type") or NO_CERTIFICATE
    if policy in _UNVERIFIED:
        raise WebConfigError(f"{_TLS}: client_auth_type: {policy} verifies nothing: use {REQUIRED}")
    policy = one_of(policy, (NO_CERTIFICATE, IF_GIVEN, REQUIRED), f"{_TLS}: client_auth_type")
    if authority and policy == NO_CERTIFICATE:
        raise WebConfigError(f"{_TLS}: client_ca_file: is of no use without client_auth_type: {REQUIRED}")
    if not authority and policy != NO_CERTIFICATE:
        raise WebConfigError(f"{_TLS}: client_auth_type: {policy} wants client_ca_file: who signs their certificates")
    sans = texts_at(found, _TLS, "client_allowed_sans")
    if sans is not None and policy != REQUIRED:
        raise WebConfigError(f"{_TLS}: client_allowed_sans wants client_auth_type: {REQUIRED}")
    if sans == ():
        raise WebConfigError(f"{_TLS}: client_allowed_sans: is empty, so nobody is allowed: name somebody")
    return policy, sans or ()


def _version(found: Mapping[str, Any], key: str, default: str) -> str:
    version = text_at(found, _TLS, key) or default
    if version in ("TLS10", "TLS11"):
        raise WebConfigError(f"{_TLS}: {key}: {version} is not safe, and not spoken here: use TLS12 or TLS13")
    return one_of(version, VERSIONS, f"{_TLS}: {key}")


def _ciphers(found: Mapping[str, Any]) -> tuple[str, ...]:
    names = texts_at(found, _TLS, "cipher_suites") or ()
    for name in names:
        one_of(name, (*CIPHERS, *_CIPHERS_13), f"{_TLS}: cipher_suites")
    ours = tuple(CIPHERS[name] for name in names if name in CIPHERS)
    if names and not ours:
        raise WebConfigError(f"{_TLS}: cipher_suites: names none of TLS 1.2: use min_version: TLS13 instead")
    return ours or DEFAULT_CIPHERS


def _curve(found: Mapping[str, Any]) -> str:
    names = texts_at(found, _TLS, "curve_preferences") or ()
    if len(names) > 1:
        raise WebConfigError(f"{_TLS}: curve_preferences: only one can be had: name it, or none for the usual ones")
    return CURVES[one_of(names[0], tuple(CURVES), f"{_TLS}: curve_preferences")] if names else ""
