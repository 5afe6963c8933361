"""Styled terminal lines with one cell per character and without control characters; numbers and durations as text."""

import unicodedata
from math import isfinite
from typing import NamedTuple

from cli.top.sparkline import BLOCKS, PLAIN
from collector.live.cluster_interval import State
from collector.printable import one_line

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
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"
