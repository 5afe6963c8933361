"""Type checks for the web configuration. Errors name the key; for an unknown key or value, they suggest a known one."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from exporters.api.web_access import WebConfigError


def section(content: Any, name: str, known: Sequence[str]) -> Mapping[str, Any]:
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


def text_at(content: Mapping[str, Any], key_path: str, key: str) -> str:
    """Return the string under a key, or "" if it is missing. Raises WebConfigError for any other value."""
    value = content.get(key)
    if value is not None and not isinstance(value, str):
        raise WebConfigError(f"{key_path}: {key}: must be a string (hint: put it in quotes)")
    return value or ""


def texts_at(content: Mapping[str, Any], key_path: str, key: str) -> tuple[str, ...] | None:
    """Return the strings listed under a key, or None if it is missing. Raises WebConfigError for any other value."""
    value = content.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise WebConfigError(f"{key_path}: {key}: must be a list of strings")
    return tuple(value)


def check_flag(content: Mapping[str, Any], key_path: str, key: str) -> None:
    """Raise WebConfigError if the key is present and its value is neither true nor false."""
    if not isinstance(content.get(key, True), bool):
        raise WebConfigError(f"{key_path}: {key}: must be true or false")


def one_of(value: str, known: Sequence[str], key_path: str) -> str:
    """Return `value` if it is one of `known`. Raises WebConfigError otherwise."""
    if value not in known:
        nearest = get_close_matches(value, known, 1, 0.0)[0]
        raise WebConfigError(f"{key_path}: unknown value {value[:50]!r} (hint: did you mean {nearest}?)")
    return value
