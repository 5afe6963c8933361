"""The value of a parameter as a number."""

import re

_NUMBER = re.compile(r"[-+]?\d{1,15}(?:\.\d{1,15})?", re.ASCII)


def number_of(value: str) -> float | None:
    """Return the number that a value states as an integer or a decimal; None if it is something else."""
    return float(value) if _NUMBER.fullmatch(value) else None
