"""The web configuration and its file, in the format of Prometheus' exporter-toolkit (`web.config.file`).

Settings that this server cannot honour are rejected with a reason, unless they can safely be ignored: whatever the file
says, HTTP/2 is never offered, and the server always prefers its own cipher order. Errors name the key; for an unknown
key or value, they suggest a known one. Without a file, anyone can read the API.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

_VERSIONS = ("TLS12", "TLS13")
NO_CERTIFICATE, IF_GIVEN, REQUIRED = "NoClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"
# Maps the names of cipher suites in Go, which the format uses, to those in OpenSSL.
_CIPHERS = {
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
# The default for TLS 1.2 excludes CBC suites, because padding attacks on them keep reappearing.
_DEFAULT_CIPHERS = tuple(openssl for name, openssl in _CIPHERS.items() if "_CBC_" not in name)
MAX_FILE_BYTES = 1 << 20
"""The size limit of a configuration file."""
_UNVERIFIED = ("RequestClientCert", "RequireClientCert", "RequireAnyClientCert")
# Maps Go's names for elliptic curves, which the format uses, to OpenSSL's names.
_CURVES = {"CurveP256": "prime256v1", "CurveP384": "secp384r1", "CurveP521": "secp521r1", "X25519": "X25519"}
# As in Go, TLS 1.3 cipher suites cannot be configured; if they are listed with TLS 1.2 suites, they are ignored.
_CIPHERS_13 = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
_TLS = "tls_server_config"
_TLS_KEYS = (
    *("cert", "key", "client_ca", "cert_file", "key_file", "client_auth_type", "client_ca_file"),
    *("client_allowed_sans", "min_version", "max_version", "cipher_suites", "curve_preferences"),
    "prefer_server_cipher_suites",
)
_MAX_COST = 16
_HEADERS: dict[str, tuple[str, ...]] = {
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff",),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-XSS-Protection": (),
    "Content-Security-Policy": (),
}
_BCRYPT = re.compile(r"\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class WebConfigError(ValueError):
    """Raised if the web configuration cannot be used; the message is one line without secrets."""


@dataclass(frozen=True)
class Tls:
    """TLS settings. `ciphers` (for TLS 1.2) and `curve` use OpenSSL's names; "" selects OpenSSL's default curves."""

    cert_file: Path
    key_file: Path
    client_auth: str = NO_CERTIFICATE
    client_ca_file: Path | None = None
    client_allowed_sans: tuple[str, ...] = ()
    min_version: str = _VERSIONS[0]
    max_version: str = _VERSIONS[-1]
    ciphers: tuple[str, ...] = _DEFAULT_CIPHERS
    curve: str = ""


@dataclass(frozen=True)
class WebConfig:
    """The API's access rules.

    tls         None for plain HTTP.
    users       bcrypt hashes by user name; empty if no password is required.
    headers     headers to add to every response.
    interval_s  seconds until another request is allowed after a burst of `burst` requests; 0 for no limit.
    """

    tls: Tls | None = None
    users: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    interval_s: float = 0.0
    burst: int = 0

    def __repr__(self) -> str:
        return f"WebConfig(tls={self.tls!r}, users={[name for name, _ in self.users]!r})"

    @property
    def requires_credentials(self) -> bool:
        """Whether the configuration asks clients for a password or a certificate."""
        return bool(self.users) or (self.tls is not None and self.tls.client_auth != NO_CERTIFICATE)


def parsed(text: str, file: Path) -> WebConfig:
    """Parse the text of `file`; paths in it are relative to the file's directory. Raises WebConfigError."""
    try:
        return _config(_loaded(text), file)
    except WebConfigError as error:
        raise WebConfigError(f"{file}: {error}") from None


def _loaded(text: str) -> Any:
    # Imported only if there is a file, because the parser needs a lot of memory.
    import yaml

    class Strict(yaml.SafeLoader):
        """A safe YAML loader that also rejects duplicate keys."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            duplicate = next((name for name in names if names.count(name) > 1), None)
            if duplicate is not None:
                raise WebConfigError(f"line {node.start_mark.line + 1}: duplicate key {str(duplicate)[:50]!r}")
            return super().construct_mapping(node, deep)

    if len(text) > MAX_FILE_BYTES:
        raise WebConfigError(f"larger than {MAX_FILE_BYTES >> 20} MiB")
    try:
        # This is safe, because Strict derives from the safe loader.
        return yaml.load(text, Strict)  # noqa: S506
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise WebConfigError(f"line {mark.line + 1 if mark else 1}: invalid YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, WebConfigError):
            raise
        raise WebConfigError(f"invalid YAML: {type(error).__name__}") from None


def _config(content: Any, file: Path) -> WebConfig:
    config = _section(content, "", ("tls_server_config", "http_server_config", "basic_auth_users", "rate_limit"))
    limit = _section(config.get("rate_limit"), "rate_limit", ("interval", "burst"))
    http = _section(config.get("http_server_config"), "http_server_config", ("http2", "headers"))
    _check_flag(http, "http_server_config", "http2")
    burst = limit.get("burst", 0)
    if type(burst) is not int or burst < 0:
        raise WebConfigError("rate_limit: burst: must be a whole number of at least 0")
    return WebConfig(
        _tls_of(config.get("tls_server_config"), file.parent),
        _users(config.get("basic_auth_users")),
        _headers(http.get("headers")),
        _duration_s(limit.get("interval", 0)),
        burst,
    )


def _users(content: Any) -> tuple[tuple[str, str], ...]:
    if content is None:
        return ()
    if not isinstance(content, dict):
        raise WebConfigError("basic_auth_users: must map user names to password hashes")
    for name, hashed in content.items():
        if not isinstance(name, str):
            key = str(name)[:50]
            raise WebConfigError(f"basic_auth_users: {key}: the user name must be a string (hint: put it in quotes)")
        key_path = f"basic_auth_users: {name[:50]!r}: "
        if ":" in name or not name.isprintable():
            raise WebConfigError(f"{key_path}a user name must contain only printable characters, and no colon")
        match = _BCRYPT.fullmatch(hashed) if isinstance(hashed, str) else None
        if match is None:
            raise WebConfigError(f"{key_path}not a bcrypt hash (hint: create one with htpasswd -nBC 10 NAME)")
        if not 4 <= int(match[1]) <= _MAX_COST:
            raise WebConfigError(f"{key_path}cost {match[1]} is not supported (hint: use 10 to {_MAX_COST})")
    return tuple(content.items())


def _headers(content: Any) -> tuple[tuple[str, str], ...]:
    key_path = "http_server_config: headers"
    configured = _section(content, key_path, tuple(_HEADERS))
    headers = []
    for name in configured:
        value = _text_at(configured, key_path, name)
        if not value.isascii() or not (value.isprintable()):
            raise WebConfigError(f"{key_path}: {name}: must be one line of printable ASCII characters")
        if _HEADERS[name] and value and value not in _HEADERS[name]:
            raise WebConfigError(f"{key_path}: {name}: must be {' or '.join(_HEADERS[name])}")
        if value:
            headers.append((name, value))
    return tuple(headers)


def _duration_s(value: Any) -> float:
    """Return the number of seconds in a duration in Go's notation, such as 1m30s or 100ms. Raises WebConfigError."""
    if value in (0, "0", None):
        return 0.0
    pieces = _DURATION.findall(value) if isinstance(value, str) else []
    if not pieces or "".join(f"{number}{unit}" for number, unit in pieces) != value:
        raise WebConfigError("rate_limit: interval: must be a duration such as 100ms or 2s")
    return sum(float(number) * _UNITS_S[unit] for number, unit in pieces)


def _tls_of(content: Any, folder: Path) -> Tls | None:
    """Return the section's settings, or None if it is empty; paths are relative to `folder`. Raises WebConfigError."""
    section_values = _section(content, _TLS, _TLS_KEYS)
    if not section_values:
        return None
    for key in ("cert", "key", "client_ca"):
        if section_values.get(key):
            raise WebConfigError(f"{_TLS}: {key}: not supported inline (hint: put it into a file and use {key}_file)")
    files = {key: _text_at(section_values, _TLS, key) for key in ("cert_file", "key_file", "client_ca_file")}
    for key in ("cert_file", "key_file"):
        if not files[key]:
            raise WebConfigError(f"{_TLS}: {key} is missing")
    # The value is ignored, because the client's order is not supported and the server's order is just as safe.
    _check_flag(section_values, _TLS, "prefer_server_cipher_suites")
    least = _version(section_values, "min_version", _VERSIONS[0])
    most = _version(section_values, "max_version", _VERSIONS[-1])
    if least > most:
        raise WebConfigError(f"{_TLS}: min_version is above max_version")
    policy, sans = _clients(section_values, files["client_ca_file"])
    certificate, private_key = folder / files["cert_file"], folder / files["key_file"]
    authority = folder / files["client_ca_file"] if files["client_ca_file"] else None
    ciphers, curve = _ciphers(section_values), _curve(section_values)
    return Tls(certificate, private_key, policy, authority, sans, least, most, ciphers, curve)


def _clients(section_values: Mapping[str, Any], authority: str) -> tuple[str, tuple[str, ...]]:
    """Return the client certificate policy and the certificate names that it accepts; () accepts all names."""
    policy = _text_at(section_values, _TLS, "client_auth_type") or NO_CERTIFICATE
    if policy in _UNVERIFIED:
        raise WebConfigError(f"{_TLS}: client_auth_type: {policy} does not verify certificates (hint: use {REQUIRED})")
    policy = _one_of(policy, (NO_CERTIFICATE, IF_GIVEN, REQUIRED), f"{_TLS}: client_auth_type")
    if authority and policy == NO_CERTIFICATE:
        raise WebConfigError(f"{_TLS}: client_ca_file: has no effect (hint: set client_auth_type: {REQUIRED})")
    if not authority and policy != NO_CERTIFICATE:
        raise WebConfigError(f"{_TLS}: client_auth_type: {policy} needs client_ca_file")
    sans = _texts_at(section_values, _TLS, "client_allowed_sans")
    if sans is not None and policy != REQUIRED:
        raise WebConfigError(f"{_TLS}: client_allowed_sans needs client_auth_type: {REQUIRED}")
    if sans == ():
        raise WebConfigError(f"{_TLS}: client_allowed_sans: an empty list admits no clients")
    return policy, sans or ()


def _version(section_values: Mapping[str, Any], key: str, default: str) -> str:
    version = _text_at(section_values, _TLS, key) or default
    if version in ("TLS10", "TLS11"):
        raise WebConfigError(f"{_TLS}: {key}: {version} is insecure and not supported (hint: use TLS12 or TLS13)")
    return _one_of(version, _VERSIONS, f"{_TLS}: {key}")


def _ciphers(section_values: Mapping[str, Any]) -> tuple[str, ...]:
    names = _texts_at(section_values, _TLS, "cipher_suites") or ()
    for name in names:
        _one_of(name, (*_CIPHERS, *_CIPHERS_13), f"{_TLS}: cipher_suites")
    names_tls12 = tuple(_CIPHERS[name] for name in names if name in _CIPHERS)
    if names and not names_tls12:
        hint = "to allow only TLS 1.3, remove cipher_suites and set min_version: TLS13"
        raise WebConfigError(f"{_TLS}: cipher_suites: no TLS 1.2 cipher suite is listed (hint: {hint})")
    return names_tls12 or _DEFAULT_CIPHERS


def _curve(section_values: Mapping[str, Any]) -> str:
    names = _texts_at(section_values, _TLS, "curve_preferences") or ()
    if len(names) > 1:
        raise WebConfigError(f"{_TLS}: curve_preferences: only one curve is supported")
    return _CURVES[_one_of(names[0], tuple(_CURVES), f"{_TLS}: curve_preferences")] if names else ""


def _section(content: Any, name: str, known: Sequence[str]) -> Mapping[str, Any]:
    """Return a section, or {} if it is missing. Raises WebConfigError if it is not a mapping or has unknown keys."""
    key_path = f"{name}: " if name else ""
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise WebConfigError(f"{key_path}must be a mapping")
    for key in content:
        if key not in known:
            nearest = get_close_matches(str(key), known, 1, 0.0)[0]
            raise WebConfigError(f"{key_path}unknown key {str(key)[:50]!r} (hint: did you mean {nearest}?)")
    return content


def _text_at(content: Mapping[str, Any], key_path: str, key: str) -> str:
    """Return the string under a key, or "" if it is missing. Raises WebConfigError for any other value."""
    value = content.get(key)
    if value is not None and not isinstance(value, str):
        raise WebConfigError(f"{key_path}: {key}: must be a string (hint: put it in quotes)")
    return value or ""


def _texts_at(content: Mapping[str, Any], key_path: str, key: str) -> tuple[str, ...] | None:
    """Return the strings listed under a key, or None if it is missing. Raises WebConfigError for any other value."""
    value = content.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise WebConfigError(f"{key_path}: {key}: must be a list of strings")
    return tuple(value)


def _check_flag(content: Mapping[str, Any], key_path: str, key: str) -> None:
    """Raise WebConfigError if the key is present and its value is neither true nor false."""
    if not isinstance(content.get(key, True), bool):
        raise WebConfigError(f"{key_path}: {key}: must be true or false")


def _one_of(value: str, known: Sequence[str], key_path: str) -> str:
    """Return `value` if it is one of `known`. Raises WebConfigError otherwise."""
    if value not in known:
        nearest = get_close_matches(value, known, 1, 0.0)[0]
        raise WebConfigError(f"{key_path}: unknown value {value[:50]!r} (hint: did you mean {nearest}?)")
    return value
