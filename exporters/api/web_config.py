"""The file that says who may use the API, in the format of Prometheus' exporter-toolkit (its `web.config.file`).

What that format allows and this server cannot do is refused with a reason, unless leaving it out makes nothing less
safe: HTTP/2 is merely never offered, and the server always prefers its own order of ciphers.
"""

import re
from pathlib import Path
from typing import Any

import yaml

from exporters.api.web_access import LARGEST_BYTES, WebConfig
from exporters.api.web_tls import tls_of
from exporters.api.web_values import WebConfigError, check_flag, section, text_at

MOST_COST = 16
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


def parsed(text: str, file: Path) -> WebConfig:
    """Return what the text of `file` says; paths are relative to the file. Raises WebConfigError."""
    try:
        return _config(_loaded(text), file)
    except WebConfigError as error:
        raise WebConfigError(f"{file}: {error}") from None


class _Strict(yaml.SafeLoader):
    """As YAML is read safely, but without keys that silently replace each other."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise WebConfigError(f"line {node.start_mark.line + 1}: {str(twice)[:50]!r} stands there twice")
        return super().construct_mapping(node, deep)


def _loaded(text: str) -> Any:
    if len(text) > LARGEST_BYTES:
        raise WebConfigError("is too large")
    try:
        # Derived from the safe loader.
        return yaml.load(text, _Strict)  # noqa: S506
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise WebConfigError(f"line {mark.line + 1 if mark else 1}: is no YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, WebConfigError):
            raise
        raise WebConfigError(f"is no YAML: {type(error).__name__}") from None


def _config(content: Any, file: Path) -> WebConfig:
    whole = section(content, "", ("tls_server_config", "http_server_config", "basic_auth_users", "rate_limit"))
    limit = section(whole.get("rate_limit"), "rate_limit", ("interval", "burst"))
    http = section(whole.get("http_server_config"), "http_server_config", ("http2", "headers"))
    check_flag(http, "http_server_config", "http2")
    burst = limit.get("burst", 0)
    if type(burst) is not int or burst < 0:
        raise WebConfigError("rate_limit: burst: must be a whole number")
    return WebConfig(
        tls_of(whole.get("tls_server_config"), file.parent),
        _users(whole.get("basic_auth_users")),
        _headers(http.get("headers")),
        _duration_s(limit.get("interval", 0)),
        burst,
    )


def _users(content: Any) -> tuple[tuple[str, str], ...]:
    if content is None:
        return ()
    if not isinstance(content, dict):
        raise WebConfigError("basic_auth_users: must hold names and hashes of passwords")
    for name, hashed in content.items():
        if not isinstance(name, str):
            raise WebConfigError(f"basic_auth_users: {str(name)[:50]}: must be text: put it in quotes")
        place = f"basic_auth_users: {name[:50]!r}: "
        if ":" in name or not name.isprintable():
            raise WebConfigError(f"{place}a name has no colon, and can be printed")
        found = _BCRYPT.fullmatch(hashed) if isinstance(hashed, str) else None
        if found is None:
            raise WebConfigError(f"{place}is no hash of bcrypt's: make one with htpasswd -nBC 10 NAME")
        if not 4 <= int(found[1]) <= MOST_COST:
            raise WebConfigError(f"{place}has cost {found[1]}, which takes too long to check: use 10 to {MOST_COST}")
    return tuple(content.items())


def _headers(content: Any) -> tuple[tuple[str, str], ...]:
    place = "http_server_config: headers"
    found = section(content, place, tuple(_HEADERS))
    made = []
    for name in found:
        value = text_at(found, place, name)
        if not value.isascii() or not (value.isprintable()):
            raise WebConfigError(f"{place}: {name}: must be one line of ASCII")
        if _HEADERS[name] and value and value not in _HEADERS[name]:
            raise WebConfigError(f"{place}: {name}: must be {' or '.join(_HEADERS[name])}")
        if value:
            made.append((name, value))
    return tuple(made)


def _duration_s(value: Any) -> float:
    """Return the seconds of a duration as Go writes it, such as 1m30s or 100ms."""
    if value in (0, "0", None):
        return 0.0
    pieces = _DURATION.findall(value) if isinstance(value, str) else []
    if not pieces or "".join(f"{number}{unit}" for number, unit in pieces) != value:
        raise WebConfigError("rate_limit: interval: must be a duration such as 100ms or 2s")
    return sum(float(number) * _UNITS_S[unit] for number, unit in pieces)
