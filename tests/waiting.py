"""Waits for a condition."""

import time
from collections.abc import Callable


def eventually(holds: Callable[[], object], timeout_s: float = 60.0) -> None:
    """Wait until a condition holds. Raises AssertionError if it does not hold within `timeout_s` seconds."""
    ends_s = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < ends_s, f"the condition did not hold within {timeout_s} s"
        time.sleep(0.02)
