"""The delta codec for histograms: encodes bucket increases as text.

Increases of 0 to 25 are encoded as the letters a to z, and all others as a decimal number followed by a comma. Most
increases are small, and their letters compress to about two bits each. Zeros before the first and after the last
nonzero increase are omitted.
"""

import re
from collections.abc import Sequence

LETTERS = "abcdefghijklmnopqrstuvwxyz"
_INCREASE = re.compile(r"([a-z])|(-?\d+),")


def encode(increases: Sequence[int]) -> tuple[int, str]:
    """Return the index of the first nonzero increase, and the encoded increases from there; (0, "") if all are 0."""
    first = next((index for index, increase in enumerate(increases) if increase), 0)
    text = "".join(
        LETTERS[increase] if 0 <= increase < len(LETTERS) else f"{increase}," for increase in increases[first:]
    )
    return first, text.rstrip("a")


def decode(text: str) -> list[int]:
    """Return the increases. Raises ValueError for malformed text."""
    increases = []
    end = 0
    for match in _INCREASE.finditer(text):
        if match.start() != end:
            break
        end = match.end()
        increases.append(ord(match[1]) - ord("a") if match[1] else int(match[2]))
    if end != len(text):
        raise ValueError(f"'{text[end : end + 20]}' is not a bucket increase")
    return increases
