"""Replaces secrets in decoded JSON: in each text by itself, so that a pattern cannot match the syntax between texts."""

from collections.abc import Collection
from typing import Any

from collector.redaction.redactor import Redactor
from collector.redaction.secret_forms import REDACTED

REFERENCES = frozenset(
    (
        "address",
        "client_hosts",
        "folder",
        "journal",
        "nodes",
        "order",
        "purpose",
        "results",
        "seeds",
        "spool",
        "unrecorded",
    )
)
"""The fields by which casstat finds something in a run, a sweep or a search: addresses, directories, fixed words."""


def redacted_json(content: Any, redactor: Redactor, kept: Collection[str] = REFERENCES) -> Any:
    """Return the content without secrets; texts and lists of texts in the fields `kept` remain as they are.

    A list of texts may be a command line, and the name of a field may say that its text is a secret. Raises
    RecursionError.
    """
    if isinstance(content, str):
        return redactor.text(content)
    if isinstance(content, list):
        if all(isinstance(item, str) for item in content):
            return list(redactor.words(content))
        return [redacted_json(item, redactor, kept) for item in content]
    if isinstance(content, dict):
        return dict(_member(key, value, redactor, kept) for key, value in content.items())
    return content


def _member(key: str, value: Any, redactor: Redactor, kept: Collection[str]) -> tuple[str, Any]:
    texts = value if isinstance(value, list) else [value]
    if all(isinstance(text, str) for text in texts):
        if key in kept:
            return key, value
        if key == "values" and isinstance(value, list):
            # Values of a sweep's parameter: secrets among them are replaced however short they are.
            return key, [redactor.value(text) for text in texts]
        if isinstance(value, str):
            return redacted_field(key, value, redactor)
    return redactor.text(key), redacted_json(value, redactor, kept)


def redacted_field(name: str, text: str, redactor: Redactor) -> tuple[str, str]:
    """Return a field without secrets; its name may say that its text is one, such as `token`."""
    name = redactor.text(name)
    (redacted,) = redactor.words([f"{name}={redactor.text(text)}"])
    # The name may contain "=", and its own first part may make the rest a secret.
    return name, redacted.removeprefix(f"{name}=") if redacted.startswith(f"{name}=") else REDACTED
