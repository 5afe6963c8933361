"""Makes text from recordings, peers and files safe to print on a terminal, and formats counts and times.

Text from outside the program passes through this module before it is printed. Characters that are not printable could
control the terminal (escape sequences such as OSC 52, which sets the clipboard) or reorder the displayed text
(bidirectional overrides).
"""

import json
import re
from collections.abc import Container, Sequence
from datetime import datetime
from itertools import chain, count, takewhile
from typing import Any

MAX_LINE_CHARS = 200
# In compact JSON, characters other than printable ASCII occur only in strings, where they may be escaped.
_NOT_ASCII = re.compile(r"[^ -~]")


def printable(text: str) -> str:
    """Return the text with each non-printable character, including newlines, replaced by a question mark."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)


def one_line(text: object) -> str:
    """Return external text in a form suitable for messages: one printable line of at most 200 characters."""
    return single_line(text)[:MAX_LINE_CHARS]


def single_line(text: object) -> str:
    """Return external text as one printable line of any length."""
    return printable(" ".join(str(text).split()))


def shortened(text: str, limit: int) -> str:
    """Return the text in at most `limit` characters; an ellipsis replaces its middle: names often differ at the end."""
    if len(text) <= limit:
        return text
    tail = limit // 2
    return f"{text[: limit - 1 - tail]}…{text[-tail:]}"


def excerpts(a: str, b: str, limit: int) -> tuple[str, str]:
    """Return both texts in at most `limit` characters each, with the place where they begin to differ.

    Ellipses replace what is left out.
    """
    if max(len(a), len(b)) <= limit:
        return a, b
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
    # Some of the equal text shows where the difference is.
    begin = same - limit // 3 if same > limit // 2 else 0
    return _from(a, begin, limit), _from(b, begin, limit)


def _from(text: str, begin: int, limit: int) -> str:
    rest = f"…{text[begin + 1 :]}" if begin else text
    return rest if len(rest) <= limit else f"{rest[: limit - 1]}…"


def count_text(count: int, singular: str, plural: str = "") -> str:
    """Return a count with its noun, such as "1 tick" or "2 ticks". The default plural is the singular with an "s"."""
    return f"{count} {singular if count == 1 else plural or f'{singular}s'}"


def names_text(names: Sequence[str], limit: int) -> str:
    """Return the first names, and how many more there are, such as "a, b and 3 more"."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def elapsed_text(seconds: float) -> str:
    """Return a duration such as 3:05 or 2:03:04."""
    minutes, left = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"


def unique_text(text: str, used: Container[str]) -> str:
    """Return the text or, if it has been used, the text with the first number that has not."""
    numbered = (f"{text} ({number})" for number in count(2))
    return next(unique for unique in chain([text], numbered) if unique not in used)


def local_time(time_s: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Return a time as text in the local time zone; "-" if it cannot be represented as a date."""
    try:
        return datetime.fromtimestamp(time_s).strftime(form)
    except (ValueError, OverflowError, OSError):
        return "-"


def printable_json(text: str) -> str:
    """Return JSON text with each character that is not printable escaped."""
    return text if text.isprintable() else _NOT_ASCII.sub(_escaped, text)


def indented_json(content: Any) -> str:
    """Return content as indented JSON with each character that is not printable escaped. Raises ValueError for NaN."""
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    return "".join(printable_json(line) + "\n" for line in text.split("\n"))


def _escaped(match: re.Match[str]) -> str:
    letter = match[0]
    if letter.isprintable():
        return letter
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[index : index + 2].hex()}" for index in range(0, len(units), 2))
