"""Parameters of an experiment: `concurrency=1,5,10`, `batch=100..1000:100`, and `{name}` in the words of a command.

In these words, `{{` and `}}` are literal braces.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches

from collector.printable import one_line
from collector.runs.parameter_sweep import SweptParameter

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,49}", re.ASCII)
"""The names of placeholders."""
HOST_PLACEHOLDERS = ("host", "index")
"""Placeholders that `record --client-host` fills in."""
_PART = re.compile(r"\{\{|\}\}|\{(?P<name>" + NAME.pattern + r")\}|(?P<malformed>[{}])", re.ASCII)
# How much of a word a message quotes.
_SHOWN_CHARS = 60
MAX_VALUES = 10_000
MAX_VALUE_CHARS = 200
EXAMPLES = "NAME=1,5,10 or NAME=100..1000:100"
# Sums of such numbers are exact in decimal arithmetic, which has 28 digits.
_NUMBER = r"[-+]?\d{1,12}(?:\.\d{1,12})?"
_RANGE = re.compile(rf"(?P<first>{_NUMBER})\.\.(?P<last>{_NUMBER})(?::(?P<step>{_NUMBER}))?", re.ASCII)
_BEGINS_LIKE_A_RANGE = re.compile(r"[-+]?[\d.]*\d\.\.", re.ASCII)


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


class ParameterError(ValueError):
    """A parameter is malformed; the message is one line."""


def parameter_of(text: str) -> SweptParameter:
    """Parse NAME=VALUES: values and ranges FIRST..LAST[:STEP], which include LAST, separated by commas.

    Values of ranges have no trailing zeros after the decimal point; other values remain as they are. Raises
    ParameterError.
    """
    name, equals, values_text = text.partition("=")
    shown = one_line(text[:MAX_VALUE_CHARS])
    if not equals or not values_text:
        raise ParameterError(f"'{shown}': expected {EXAMPLES}")
    if not NAME.fullmatch(name):
        hint = "a name has letters, digits, '_' and '-', and begins with a letter"
        raise ParameterError(f"'{shown}': '{one_line(name[:50])}' is not a name (hint: {hint})")
    values: dict[str, None] = {}
    for item in values_text.split(","):
        for value in _values_of(item, shown):
            if value in values:
                raise ParameterError(f"'{shown}': the value {one_line(value)} occurs twice")
            values[value] = None
            if len(values) > MAX_VALUES:
                raise ParameterError(f"'{shown}': more than {MAX_VALUES:,} values (hint: use a larger step)")
    return SweptParameter(name, tuple(values))


def _values_of(item: str, shown: str) -> Iterator[str]:
    """Yield the values of a part of the text between commas. Raises ParameterError."""
    match = _RANGE.fullmatch(item)
    if match:
        yield from _range_values(Decimal(match["first"]), Decimal(match["last"]), match["step"], shown)
        return
    if _BEGINS_LIKE_A_RANGE.match(item):
        raise ParameterError(
            f"'{shown}': '{one_line(item)}' is not a range (hint: use FIRST..LAST or FIRST..LAST:STEP)"
        )
    if not item:
        raise ParameterError(f"'{shown}': a value is empty")
    if len(item) > MAX_VALUE_CHARS or not item.isprintable():
        raise ParameterError(f"'{shown}': a value must have at most {MAX_VALUE_CHARS} printable characters")
    yield item


def _range_values(first: Decimal, last: Decimal, step_text: str | None, shown: str) -> Iterator[str]:
    default = Decimal(1) if first <= last else Decimal(-1)
    step = default if step_text is None else Decimal(step_text)
    if not step:
        raise ParameterError(f"'{shown}': the step is zero")
    if (last - first) * step < 0:
        raise ParameterError(f"'{shown}': the step {step_text} leads away from {last}")
    value = first
    while (last - value) * step >= 0:
        yield _text(value)
        value += step


def _text(value: Decimal) -> str:
    """Return a number without an exponent and without trailing zeros after the decimal point."""
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text
