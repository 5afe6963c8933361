"""Formats numbers, times and external text for a report."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone

from collector.printable import printable

MAX_CHARS, MAX_COMMAND_CHARS = 2000, 100_000
_SPECIAL = re.compile(r"([\\`*_\[\]|~#])")
# Entities in addresses prevent renderers from turning them into links.
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "://": "&#58;//", "www.": "www&#46;", "@": "&#64;"}


def shown(text: str, limit: int = MAX_CHARS) -> str:
    """Return external text as one printable line of at most `limit` characters; an ellipsis replaces the rest."""
    line = printable(" ".join(text[: 4 * limit].split()))
    return line if len(line) <= limit and len(text) <= 4 * limit else f"{line[: limit - 1]}…"


def escaped_text(text: str) -> str:
    """Return text in which a Markdown renderer recognises no markup, HTML or links."""
    line = shown(text)
    for part, entity in _ENTITIES.items():
        line = line.replace(part, entity)
    # The `#` of an entity must not be escaped.
    return re.sub(r"&\\#", "&#", _SPECIAL.sub(r"\\\1", line))


def command_text(text: str) -> str:
    """Return a command line with its white space, which may be part of a word, but without other control characters."""
    return re.sub(r"[^\n\t]+", lambda part: printable(part[0]), text[:MAX_COMMAND_CHARS])


def clock_text(time_s: float, zone_s: int) -> str:
    """Return the time of day in a time zone; "-" if it cannot be represented."""
    try:
        return f"{datetime.fromtimestamp(time_s, timezone(timedelta(seconds=zone_s))):%H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return "-"


def significant(value: float) -> float:
    """Return a value rounded to four significant digits."""
    rounded = float(f"{value:.4g}")
    return int(rounded) if rounded.is_integer() else rounded


def value_text(value: float, unit: str = "") -> str:
    """Return a value with four significant digits, thousands separators and its unit."""
    number = significant(value)
    return f"{number:,} {unit}".rstrip()


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], is_text: Sequence[bool]) -> list[str]:
    """Return the lines of a table; `is_text` states which columns are left-aligned, and the others have numbers."""
    rule = [":---" if left else "---:" for left in is_text]
    escaped, *others = ([escaped_text(cell) for cell in row] for row in (header, *rows))
    return [f"| {' | '.join(row)} |" for row in (escaped, rule, *others)]


def aligned_lines(rows: Sequence[Sequence[str]], is_text: Sequence[bool]) -> Iterator[str]:
    """Yield rows with columns of text, according to `is_text`, left-aligned, and the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, is_text, strict=True)
        yield "  ".join(cell.ljust(width) if left else cell.rjust(width) for cell, width, left in cells).rstrip()


def list_text(texts: Sequence[str], limit: int = 5) -> str:
    """Return the first texts, separated by commas, and the number of the others."""
    more = [f"{len(texts) - limit} more"] if len(texts) > limit else []
    return ", ".join([*texts[:limit], *more])
