"""Parses the web configuration file, in the format of Prometheus' exporter-toolkit (`web.config.file`).

Settings that this server cannot honour are rejected with a reason, unless they can safely be ignored: whatever the file
says, HTTP/2 is never offered, and the server always prefers its own cipher order.
"""

import re
from pathlib import Path
from typing import Any

import yaml

from exporters.api.web_access import MAX_FILE_BYTES, WebConfig, WebConfigError
from exporters.api.web_tls import tls_of
from exporters.api.web_values import check_flag, section, text_at

MAX_COST = 16
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
    """Parse the text of `file`; paths in it are relative to the file's directory. Raises WebConfigError."""
    try:
        return _config(_loaded(text), file)
    except WebConfigError as error:
        raise WebConfigError(f"{file}: {error}") from None


class _Strict(yaml.SafeLoader):
    """A safe YAML loader that also rejects duplicate keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        duplicate = next((name for name in names if names.count(name) > 1), None)
        if duplicate is not None:
            raise WebConfigError(f"line {node.start_mark.line + 1}: duplicate key {str(duplicate)[:50]!r}")
        return super().construct_mapping(node, deep)


def _loaded(text: str) -> Any:
    if len(text) > MAX_FILE_BYTES:
        raise WebConfigError(f"larger than {MAX_FILE_BYTES >> 20} MiB")
    try:
        # This is safe, because _Strict derives from the safe loader.
        return yaml.load(text, _Strict)  # noqa: S506
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise WebConfigError(f"line {mark.line + 1 if mark else 1}: invalid YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, WebConfigError):
            raise
        raise WebConfigError(f"invalid YAML: {type(error).__name__}") from None


def _config(content: Any, file: Path) -> WebConfig:
    config = section(content, "", ("tls_server_config", "http_server_config", "basic_auth_users", "rate_limit"))
    limit = section(config.get("rate_limit"), "rate_limit", ("interval", "burst"))
    http = section(config.get("http_server_config"), "http_server_config", ("http2", "headers"))
    check_flag(http, "http_server_config", "http2")
    burst = limit.get("burst", 0)
    if type(burst) is not int or burst < 0:
        raise WebConfigError("rate_limit: burst: must be a whole number of at least 0")
    return WebConfig(
        tls_of(config.get("tls_server_config"), file.parent),
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
        if not 4 <= int(match[1]) <= MAX_COST:
            raise WebConfigError(f"{key_path}cost {match[1]} is not supported (hint: use 10 to {MAX_COST})")
    return tuple(content.items())


def _headers(content: Any) -> tuple[tuple[str, str], ...]:
    key_path = "http_server_config: headers"
    configured = section(content, key_path, tuple(_HEADERS))
    headers = []
    for name in configured:
        value = text_at(configured, key_path, name)
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
