"""Placeholders in the words of a command: `{name}` stands for a value, `{{` and `}}` are literal braces."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from collector.printable import one_line

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,49}", re.ASCII)
"""The names of placeholders."""
HOST_PLACEHOLDERS = ("host", "index")
"""Placeholders that `record --client-host` fills in."""
_PART = re.compile(r"\{\{|\}\}|\{(?P<name>" + NAME.pattern + r")\}|(?P<malformed>[{}])", re.ASCII)
# How much of a word a message quotes.
_SHOWN_CHARS = 60


class PlaceholderError(ValueError):
    """A command and the values of its placeholders do not match; the message is one line."""


def placeholders(words: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the placeholders in a command, in the order in which they first occur.

    Raises PlaceholderError if a brace is neither doubled nor part of a placeholder.
    """
    return tuple(dict.fromkeys(match["name"] for word in words for match in _parts(word) if match["name"]))


def filled(words: Iterable[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words with values instead of placeholders, and single braces instead of doubled ones.

    The values are not examined for placeholders. Raises PlaceholderError, also if a placeholder has no value.
    """
    return tuple(_filled(word, values) for word in words)


def filled_except_hosts(words: Iterable[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words as `filled` does, with HOST_PLACEHOLDERS unchanged. Raises PlaceholderError."""
    return filled(words, {**{name: f"{{{name}}}" for name in HOST_PLACEHOLDERS}, **values})


def require_match(
    words: Sequence[str], names: Collection[str], *, others: Collection[str] = (), option: str = "-P"
) -> None:
    """Raise PlaceholderError unless each of `names` occurs in the words, and nothing but `names` and `others` does.

    `option` is the option that defines the names, for the message; "" if the command does.
    """
    used = placeholders(words)
    for name in used:
        if name not in (*names, *others):
            raise _unknown(name, (*names, *others), f", or define it with {option} {name}=…" if option else "")
    unused = [name for name in names if name not in used]
    if unused:
        hint = f"add it, or omit {option} {unused[0]}" if option else "add it to the load generator's arguments"
        raise PlaceholderError(f"the command does not use {{{unused[0]}}} (hint: {hint})")


def _parts(word: str) -> Iterator["re.Match[str]"]:
    """Yield the placeholders and doubled braces of a word. Raises PlaceholderError."""
    for match in _PART.finditer(word):
        if match["malformed"]:
            shown = one_line(word[max(0, match.start() - 20) :][:_SHOWN_CHARS])
            brace = match["malformed"]
            raise PlaceholderError(
                f"'{shown}': '{brace}' is not part of a placeholder such as {{name}}"
                f" (hint: write {brace * 2} for a literal brace)"
            )
        yield match


def _filled(word: str, values: Mapping[str, str]) -> str:
    parts, end = [], 0
    for match in _parts(word):
        name = match["name"]
        if name and name not in values:
            raise _unknown(name, values, "")
        parts += [word[end : match.start()], values[name] if name else match[0][0]]
        end = match.end()
    return "".join([*parts, word[end:]])


def _unknown(name: str, names: Iterable[str], alternative: str) -> PlaceholderError:
    similar = get_close_matches(name, list(names), 1)
    hint = (
        f"did you mean {{{similar[0]}}}?" if similar else f"write {{{{{name}}}}} for a literal {{{name}}}{alternative}"
    )
    return PlaceholderError(f"unknown placeholder {{{name}}} (hint: {hint})")
