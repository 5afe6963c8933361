"""Sparklines: the last values of a column in one line of text."""

from collections.abc import Sequence
from math import isfinite

BLOCKS, PLAIN = "▁▂▃▄▅▆▇█", "_.-=+*#@"


def spark(values: Sequence[float], width: int, letters: str = BLOCKS) -> str:
    """Return the last `width` values, the newest at the right, between 0 and the greatest of them.

    What is not known (NaN) is a gap.
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
