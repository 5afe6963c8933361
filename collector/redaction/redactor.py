"""Replaces secrets in command lines, texts, streams of output, and decoded JSON."""

import base64
import html
import json
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from collector.printable import unique_text
from collector.redaction.command_secrets import Word, examined, script_words
from collector.redaction.secret_forms import (
    REDACTED,
    Span,
    encoded,
    ends_in_name,
    has_hint,
    is_ordinary,
    is_secret_name,
    is_secret_value,
    open_private_key,
    replaced,
    secret_spans,
)

MIN_CHARS = 4
"""A shorter secret is replaced only where its form shows that it is one."""
# From this length on, a secret is also recognised inside a longer word.
_MIN_PART_CHARS = 6
# Well-known passwords that are ordinary words of this field; replacing them everywhere would destroy results.
_ORDINARY_WORDS = frozenset(
    (
        *("admin", "basic", "bearer", "cassandra", "default", "delete", "false", "guest", "insert", "localhost"),
        *("mixed", "none", "null", "password", "read", "root", "scylla", "secret", "select", "stress", "test"),
        *("token", "true", "update", "user", "write"),
    )
)
# A command that `sh -x` prints, or after a prompt.
_TRACE = re.compile(r"^(\++ |\$ )(.{1,4096})$", re.MULTILINE)
_NUMBER = re.compile(r"[\d.,+-]+")
# How much incomplete output is kept for the rest of a line, or of a private key; more of a line that has no place where
# it can be divided.
MAX_LINE_BYTES, MAX_KEY_BYTES, _MAX_UNDIVIDED_BYTES = 1 << 16, 1 << 16, 1 << 20
_LOOK_BACK_BYTES = 1 << 12
_MARK = REDACTED.encode()


@dataclass(frozen=True)
class Redactor:
    """What is a secret in a run, in addition to the known forms.

    patterns      regular expressions of secrets: the first group of a match or, without groups, the whole match.
    values        secrets that have been recognised, each with what replaces it.
    placeholders  the names of placeholders, such as those of a sweep's parameters, which are not secrets.
    """

    patterns: tuple[re.Pattern[str], ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    placeholders: frozenset[str] = frozenset()

    def knowing(self, values: Iterable[str]) -> "Redactor":
        """Return a redactor that knows more secrets."""
        known = [value for value in values if is_secret_value(value) and not self._is_placeholder(value)]
        parts = (part for value in known for part in _parts_of(value))
        new = dict.fromkeys(filter(is_secret_value, parts), REDACTED)
        return replace(self, values={**new, **self.values})

    def knowing_command(self, words: Sequence[str]) -> "Redactor":
        """Return a redactor that also knows the secrets in a command line."""
        return self.knowing(self._in_words(words))

    def knowing_environment(self, environ: Mapping[str, str]) -> "Redactor":
        """Return a redactor that also knows the values of the environment variables that are secrets by their names."""
        return self.knowing(
            value for name, value in environ.items() if is_secret_name(name) and not is_ordinary(name, value)
        )

    def numbering(self, values: Sequence[str]) -> "Redactor":
        """Return a redactor that replaces these secrets with REDACTED-1, REDACTED-2 and so on, to tell them apart."""
        numbered = {value: f"{REDACTED}-{number}" for number, value in enumerate(values, 1) if is_secret_value(value)}
        return replace(self, values={**self.values, **numbered})

    def value(self, value: str) -> str:
        """Return the value of a parameter, with all secrets replaced."""
        return self.values.get(value) or self.text(value)

    def text(self, text: str) -> str:
        """Return the text with all secrets replaced."""
        if self.patterns:
            text = replaced(text, self._matches(text), self._replacement)
        if "+ " in text or "$ " in text:
            traced = _TRACE.sub(lambda match: match[1] + self._script(match[2]), text)
            text = text if traced == text else traced
        if any(variant in text for variant in self._variants):
            text = self._known.sub(lambda match: self._variants[match[0]], text)
        spans = [span for span in secret_spans(text) if not self._is_placeholder(text[slice(*span)])]
        return replaced(text, iter(spans), self._replacement) if spans else text

    def data(self, data: bytes) -> bytes:
        """Return UTF-8 text with all secrets replaced; other bytes remain as they are."""
        if not (self.patterns or has_hint(data) or b"+ " in data or b"$ " in data or self.knows_any_in(data)):
            return data
        text = data.decode(errors="surrogateescape")
        result = self.text(text)
        return data if result is text else result.encode(errors="surrogateescape")

    def knows_any_in(self, data: bytes) -> bool:
        """Return whether the data contain a known secret."""
        return any(variant in data for variant in self._encoded_variants)

    def words(self, words: Sequence[str], raw: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the words of a command line with all secrets replaced; `raw` is as in `examined`."""
        changed = list(words)
        for index, spans in self._pattern_spans(words).items():
            changed[index] = replaced(words[index], iter(spans), self._replacement)
        return tuple(self._word(word, is_in_script=bool(raw)) for word in examined(changed, raw))

    def _word(self, word: Word, *, is_in_script: bool) -> str:
        text = word.text
        if word.secret and not self._is_placeholder(word.value):
            text = replaced(text, iter([word.secret]), self._replacement)
        if word.is_script:
            text = self._script(text)
        # In a script, a reference such as $PASSWORD is no secret; the script's text is examined as a whole.
        if is_in_script:
            return text
        return self._script_text(text) if word.is_script else self.text(text)

    def _script(self, script: str) -> str:
        """Return a shell script with the secrets in its words replaced."""
        places = script_words(script)
        words = [word for _, word in places]
        if words == [script]:
            return script
        changed = self.words(words, [script[slice(*span)] for span, _ in places])
        parts, end = [], 0
        for (span, before), after in zip(places, changed, strict=True):
            if before != after:
                parts += [script[end : span[0]], shlex.quote(after)]
                end = span[1]
        return "".join([*parts, script[end:]])

    def _script_text(self, script: str) -> str:
        """Return a script with the secrets replaced that only its text shows; references to variables remain."""
        matches = re.finditer(r"\$(?:\w+|\{[^}]*\})|\$\([^)]{0,1000}\)?", script)
        references = {text for match in matches for text in (match[0], match[0].split()[0], match[0].rstrip("})"))}
        return replace(self, placeholders=self.placeholders | references).text(script)

    def _in_words(self, words: Sequence[str], raw: Sequence[str] = ()) -> Iterator[str]:
        for index, spans in self._pattern_spans(words).items():
            yield from (words[index][slice(*span)] for span in spans)
        for word in examined(words, raw):
            text = word.text
            if word.secret:
                yield word.value
            if word.is_script:
                places = script_words(text)
                yield from self._in_words([part for _, part in places], [text[slice(*span)] for span, _ in places])
            yield from (text[slice(*span)] for span in secret_spans(text) if "$" not in text[slice(*span)][:1])

    def _pattern_spans(self, words: Sequence[str]) -> dict[int, list[Span]]:
        """Return the parts of words that match a pattern, which may span several words."""
        spans: dict[int, list[Span]] = {}
        for begin, end in self._matches(" ".join(words)):
            offset = 0
            for index, word in enumerate(words):
                first, last = max(begin - offset, 0), min(end - offset, len(word))
                if first < last:
                    spans.setdefault(index, []).append((first, last))
                offset += len(word) + 1
        return spans

    def _matches(self, text: str) -> Iterator[Span]:
        for pattern in self.patterns:
            for match in pattern.finditer(text):
                span = match.span(1 if pattern.groups and match[1] is not None else 0)
                if span[0] < span[1] and is_secret_value(text[slice(*span)]):
                    yield span

    def _replacement(self, secret: str) -> str:
        return self.values.get(secret, REDACTED)

    def _is_placeholder(self, value: str) -> bool:
        return value in self.placeholders or (value[:1] == "{" and value.strip("{}") in self.placeholders)

    @cached_property
    def _variants(self) -> Mapping[str, str]:
        """The forms in which known secrets are replaced everywhere, each with what replaces it."""
        return {
            variant: replacement
            for value, replacement in self.values.items()
            if is_distinct(value)
            for variant in _variants_of(value)
        }

    @cached_property
    def _encoded_variants(self) -> Sequence[bytes]:
        return [encoded(variant) for variant in self._variants]

    @cached_property
    def _known(self) -> re.Pattern[str]:
        return re.compile("|".join(map(_pattern_of, sorted(self._variants, key=len, reverse=True))))


KNOWN_FORMS = Redactor()
"""Replaces the secrets that have a known form."""


def is_distinct(value: str) -> bool:
    """Return whether a secret is replaced wherever it occurs, even without a form that shows that it is one."""
    if len(value) < MIN_CHARS or value.lower() in _ORDINARY_WORDS:
        return False
    return len(value) >= _MIN_PART_CHARS or not _NUMBER.fullmatch(value)


def _parts_of(value: str) -> Iterator[str]:
    """Yield a secret, and the secrets in it if it is the value of a header: credentials after a scheme, or cookies."""
    yield value
    scheme, _, credentials = value.partition(" ")
    if scheme.lower() in ("basic", "bearer", "token"):
        yield credentials
        if scheme.lower() == "basic":
            with suppress(ValueError):
                yield base64.b64decode(credentials, validate=True).decode().partition(":")[2]
    yield from (cookie[1] for cookie in re.finditer(r"[\w.\-]+=([^;\s]+)(?:;|$)", value))


def _variants_of(value: str) -> Iterator[str]:
    """Yield a secret, and how it is written in URLs, JSON, HTML, shell scripts and Basic authentication."""
    yield value
    raw = encoded(value)
    for quoted in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield quoted
        yield re.sub("%..", lambda match: match[0].lower(), quoted)
    yield unquote(value, errors="surrogateescape")
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield html.escape(value)
    yield value.replace("'", "'\"'\"'")
    yield value.replace("'", "'\\''")
    yield from (line for line in value.splitlines() if len(line) >= _MIN_PART_CHARS)
    if len(raw) >= _MIN_PART_CHARS:
        yield base64.b64encode(raw).decode()


def _pattern_of(variant: str) -> str:
    """Return the pattern of a known secret: a short one, or a number, is not replaced inside a longer word."""
    if len(variant) >= _MIN_PART_CHARS and not _NUMBER.fullmatch(variant):
        return re.escape(variant)
    return rf"(?<![^\W_])(?<!\d[.,]){re.escape(variant)}(?![^\W_])(?![.,]\d)"


class RedactedStream:
    """Redacts output that arrives in pieces: keeps a line, or a private key, until it is complete."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._rest = b""
        self._limit = MAX_LINE_BYTES
        self.count = 0
        """The number of secrets that have been replaced."""

    def add(self, data: bytes) -> bytes:
        """Return what can be written now."""
        pending, result = self._rest + data, None
        cut = max(pending.rfind(b"\n"), pending.rfind(b"\r", 0, -1)) + 1
        # In Latin-1, the position of a character is that of its byte.
        key = open_private_key(pending.decode("latin-1")) if b"-----BEGIN " in pending else None
        if key is not None and len(pending) - key < MAX_KEY_BYTES:
            cut = min(cut, pending.rfind(b"\n", 0, key) + 1)
        elif len(pending) - cut > self._limit:
            cut, result = self._inside_line(pending, cut)
        if cut and result is None:
            last = pending.rfind(b"\n", 0, cut - 1) + 1
            cut = last if ends_in_name(pending[last:cut].decode("latin-1")) else cut
        self._rest = pending[cut:]
        return self._redacted(pending[:cut], result) if cut else b""

    def end(self) -> bytes:
        rest, self._rest = self._rest, b""
        return self._redacted(rest)

    def _redacted(self, data: bytes, result: bytes | None = None) -> bytes:
        if result is None:
            result = self._redactor.data(data)
        if result != data:
            self.count += max(result.count(_MARK) - data.count(_MARK), 1)
        return result

    def _inside_line(self, pending: bytes, begin: int) -> tuple[int, bytes | None]:
        """Return where the very long line from `begin` on can be divided, so that no secret of the whole is lost.

        Also returns what precedes this place without secrets; 0 and None if more of the line must be known.
        """
        whole = self._redactor.data(pending)
        self._limit = MAX_LINE_BYTES
        for end in (len(pending) - _LOOK_BACK_BYTES, len(pending) // 2):
            for cut in (pending.rfind(b" ", begin, end), pending.rfind(b",", begin, end) + 1, end):
                if cut > begin:
                    first = self._redactor.data(pending[:cut])
                    if first + self._redactor.data(pending[cut:]) == whole:
                        return cut, first
        self._limit = 2 * len(pending)
        return (0, None) if self._limit <= _MAX_UNDIVIDED_BYTES else (len(pending), whole)


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
