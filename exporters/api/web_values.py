"""Values of a configuration file, each of the kind that it must be; errors name the key and say what was meant."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any


class WebConfigError(ValueError):
    """The file cannot be used; the message says where, why and what to do, in one line, without secrets."""


def section(content: Any, name: str, known: Sequence[str]) -> Mapping[str, Any]:
    """Return the mapping under `name`, empty where nothing stands there."""
    place = f"{name}: " if name else ""
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise WebConfigError(f"{place}must hold names and values")
    for key in content:
        if key not in known:
            near = get_close_matches(str(key), known, 1, 0.0)[0]
            raise WebConfigError(f"{place}{str(key)[:50]!r} is not known: is {near} meant?")
    return content


def text_at(content: Mapping[str, Any], place: str, key: str) -> str:
    """Return the text at a key, "" where there is none."""
    value = content.get(key)
    if value is not None and not isinstance(value, str):
        raise WebConfigError(f"{place}: {key}: must be text: put it in quotes")
    return value or ""


def texts_at(content: Mapping[str, Any], place: str, key: str) -> tuple[str, ...] | None:
    """Return the texts at a key, None where there are none."""
    value = content.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise WebConfigError(f"{place}: {key}: must be a list of texts")
    return tuple(value)


def check_flag(content: Mapping[str, Any], place: str, key: str) -> None:
    """Refuse what is neither true nor false; the value itself changes nothing here."""
    if not isinstance(content.get(key, True), bool):
        raise WebConfigError(f"{place}: {key}: must be true or false")


def one_of(value: str, known: Sequence[str], place: str) -> str:
    """Return the value, which must be one of those known."""
    if value not in known:
        near = get_close_matches(value, known, 1, 0.0)[0]
        raise WebConfigError(f"{place}: {value[:50]!r} is not known: is {near} meant?")
    return value
