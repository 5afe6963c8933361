"""Sparklines and charts of a column's latest values."""

from collections.abc import Sequence
from math import isfinite

BLOCKS, PLAIN = "▁▂▃▄▅▆▇█", "_.-=+*#@"


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
