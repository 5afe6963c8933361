"""Replaces secrets in decoded JSON, one text at a time, so that a pattern cannot match the syntax between texts."""

from collections.abc import Collection, Mapping
from typing import Any

from collector.printable import unique_text
from collector.redaction.redactor import KNOWN_FORMS, Redactor
from collector.redaction.secret_forms import REDACTED


class RedactedJson:
    """Replaces the secrets in a document, except in the fields `kept`, which are named like `nodes.address`.

    remaining  those of the fields `kept` that contain a secret.
    """

    def __init__(self, redactor: Redactor, kept: Collection[str]) -> None:
        self._redactor, self._kept = redactor, kept
        self.remaining: set[str] = set()

    def redacted(self, content: Any, path: str = "") -> Any:
        """Return the content of the field at `path` without secrets. Raises RecursionError.

        A list of texts may be a command line, and the name of a field may say that its text is a secret. Names of
        fields do not change, except those of tags.
        """
        if isinstance(content, str):
            # A pattern must not match the field's name.
            return redacted_field(path.rpartition(".")[2], self._redactor.text(content), KNOWN_FORMS)[1]
        if isinstance(content, list):
            if all(isinstance(item, str) for item in content):
                is_value = path == "parameters.values"
                return [*map(self._redactor.value, content)] if is_value else list(self._redactor.words(content))
            return [self.redacted(item, path) for item in content]
        if isinstance(content, dict):
            if path == "tags" and all(isinstance(value, str) for value in content.values()):
                return redacted_tags(content, self._redactor)
            return {key: self._member(f"{path}.{key}".lstrip("."), value) for key, value in content.items()}
        return content

    def _member(self, path: str, value: Any) -> Any:
        redacted = self.redacted(value, path)
        if path not in self._kept:
            return redacted
        if redacted != value:
            self.remaining.add(path)
        return value


def redacted_tags(tags: Mapping[str, str], redactor: Redactor) -> dict[str, str]:
    """Return tags without secrets; their names remain different."""
    redacted: dict[str, str] = {}
    for name, text in tags.items():
        name, text = redacted_field(name, text, redactor)
        redacted[unique_text(name, redacted)] = text
    return redacted


def redacted_field(name: str, text: str, redactor: Redactor) -> tuple[str, str]:
    """Return a field without secrets; its name may say that its text is one, such as `token`."""
    name = redactor.text(name)
    (redacted,) = redactor.words([f"{name}={redactor.text(text)}"])
    # The name may contain "=", and its own first part may make the rest a secret.
    return name, redacted.removeprefix(f"{name}=") if redacted.startswith(f"{name}=") else REDACTED
