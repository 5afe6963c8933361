"""What a histogram gained, as letters: nearly all buckets gain little, and a letter costs two bits once compressed.

A bucket that gained 0 to 25 is a letter from a to z, another one its number with a comma behind it; those before the
first and after the last that gained anything are left out.
"""

import re
from collections.abc import Sequence

LETTERS = "abcdefghijklmnopqrstuvwxyz"
_GAIN = re.compile(r"([a-z])|(-?\d+),")


def spelled(gains: Sequence[int]) -> tuple[int, str]:
    """Return the place of the first bucket that gained anything, and the gains from there on; (0, "") for none."""
    first = next((place for place, gain in enumerate(gains) if gain), 0)
    text = "".join(LETTERS[gain] if 0 <= gain < len(LETTERS) else f"{gain}," for gain in gains[first:])
    return first, text.rstrip("a")


def read(text: str) -> list[int]:
    """Return the gains. Raises ValueError for a text that says something else."""
    gains = []
    end = 0
    for found in _GAIN.finditer(text):
        if found.start() != end:
            break
        end = found.end()
        gains.append(ord(found[1]) - ord("a") if found[1] else int(found[2]))
    if end != len(text):
        raise ValueError(f"'{text[end : end + 20]}' is no gain of a bucket")
    return gains
