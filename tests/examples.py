"""The number of examples that Hypothesis draws: all in `make test`, and a quarter in `make check`."""

import os

IS_THOROUGH = bool(os.environ.get("THOROUGH_TESTS"))


def examples(number: int) -> int:
    """Return the number of examples for this test run; each run draws different ones."""
    return number if IS_THOROUGH else max(number // 4, 3)
