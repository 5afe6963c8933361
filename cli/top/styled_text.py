"""Styled terminal lines with one cell per character and without control characters; numbers and sparklines as text."""

import unicodedata
from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

from collector.live.cluster_interval import State
from collector.printable import elapsed_text, one_line

BLOCKS, PLAIN = "▁▂▃▄▅▆▇█", "_.-=+*#@"
# Zero-width Hangul letters, and symbols that have been two cells wide since Unicode 16. Older versions of Python
# report a width of one cell for all of them.
_NOT_ONE_CELL = frozenset(
    chr(code)
    for first, last in (
        (0x1160, 0x11FF),
        (0x2630, 0x2637),
        (0x268A, 0x268F),
        (0x4DC0, 0x4DFF),
        (0xD7B0, 0xD7FB),
        (0xFFA0, 0xFFA0),
        (0x1D300, 0x1D376),
    )
    for code in range(first, last + 1)
)
SUFFIXES = ("", "k", "M", "G", "T", "P")
ABSENT = "-"


def spark(values: Sequence[float], width: int, letters: str = BLOCKS) -> str:
    """Return the last `width` values as one line with the newest at the right, scaled from 0 to their maximum.

    NaN is drawn as a gap.
    """
    shown = values[-width:] if width > 0 else ()
    known = [value for value in shown if isfinite(value)]
    most = max(known, default=0.0)
    return "".join(_letter(value, most, letters) for value in shown).rjust(max(width, 0))


def _letter(value: float, most: float, letters: str) -> str:
    if not isfinite(value):
        return " "
    if value <= 0 or most <= 0:
        return letters[0]
    return letters[min(int(value / most * len(letters)), len(letters) - 1)]


def chart(values: Sequence[float], width: int, height: int, letters: str = BLOCKS) -> list[str]:
    """Return the last `width` values as bars up to `height` lines high, scaled from 0 to their maximum.

    NaN is drawn as a gap.
    """
    shown = values[-width:] if width > 0 else ()
    most = max((value for value in shown if isfinite(value)), default=0.0)
    levels = [_level(value, most, height * len(letters)) for value in shown]
    rows = [
        "".join(
            letters[min(level - row * len(letters), len(letters)) - 1] if level > row * len(letters) else " "
            for level in levels
        )
        for row in reversed(range(height))
    ]
    return [row.rjust(max(width, 0)) for row in rows]


def _level(value: float, most: float, levels: int) -> int:
    """Return a bar's height in levels: 0 for NaN and infinite values, otherwise at least 1."""
    if not isfinite(value):
        return 0
    return max(1, round(value / most * levels)) if value > 0 and most > 0 else 1


class Span(NamedTuple):
    """Text with a style: keys of `cli.top.textual_app.STYLES`, separated by spaces; "" for none."""

    text: str
    style: str = ""


Line = tuple[Span, ...]


class Marks(NamedTuple):
    """Symbols for states and faults, sparkline characters, the separator, the ellipsis and the sort marks."""

    states: dict[State, str]
    fault: str
    spark: str
    dot: str
    ellipsis: str
    down: str
    up: str


FINE = Marks(
    {State.UP: "●", State.CHANGING: "◐", State.SILENT: "○", State.GONE: "✖", State.NEW: "·"},
    "▲",
    BLOCKS,
    " · ",
    "…",
    "▼",
    "▲",
)


ASCII = Marks(
    {State.UP: "+", State.CHANGING: "*", State.SILENT: "o", State.GONE: "X", State.NEW: "?"},
    "!",
    PLAIN,
    " | ",
    ">",
    "v",
    "^",
)


def clean(text: str, marks: Marks = FINE) -> str:
    """Return untrusted text as a single line in which each character is one cell wide."""
    return "".join(letter if _is_plain(letter, marks) else "?" for letter in one_line(text))


def _is_plain(letter: str, marks: Marks) -> bool:
    if letter < "\x7f":
        return True
    if marks is ASCII:
        return False
    if letter in _NOT_ONE_CELL:
        return False
    return unicodedata.east_asian_width(letter) not in "WF" and unicodedata.category(letter)[0] not in "MC"


def fit(text: str, width: int, marks: Marks = FINE) -> str:
    """Return the text padded or truncated to exactly `width` cells."""
    if len(text) <= width:
        return text.ljust(width)
    return text[: width - 1] + marks.ellipsis if width > 1 else text[: max(width, 0)]


def width_of(line: Line) -> int:
    """Return the line's width in cells."""
    return sum(len(span.text) for span in line)


def cut(line: Line, width: int) -> Line:
    """Return the line padded or truncated to exactly `width` cells."""
    spans: list[Span] = []
    left = width
    for span in line:
        if left <= 0:
            break
        spans.append(Span(span.text[:left], span.style))
        left -= len(spans[-1].text)
    return (*spans, Span(" " * left)) if left > 0 else tuple(spans)


def plain(line: Line) -> str:
    """Return the line's text without styles."""
    return "".join(span.text for span in line)


def number(value: float | None, digits: int, width: int = 7) -> str:
    """Return a number in at most `width` characters, with fewer decimals or a suffix (k, M, …) if necessary.

    An unknown or infinite number is shown as ABSENT.
    """
    if value is None or not isfinite(value):
        return ABSENT
    for decimals in range(digits, -1, -1):
        text = f"{value:.{decimals}f}"
        if len(text) <= width:
            return text
    for power, suffix in enumerate(SUFFIXES):
        text = f"{value / 1000**power:.{1 if power else 0}f}{suffix}"
        if len(text) <= width:
            return text
    return ">" * width


def span_of_time(seconds: float) -> str:
    """Return a duration as text, such as 12 s, 3:05 or 2:03:04."""
    return f"{int(seconds)} s" if seconds < 60 else elapsed_text(seconds)
