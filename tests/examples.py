"""How many examples a test uses: all in `make test`, and a part in `make check`."""

import os
from collections.abc import Sequence
from typing import TypeVar

import pytest

Value = TypeVar("Value")
IS_THOROUGH = bool(os.environ.get("THOROUGH_TESTS"))
thorough = pytest.mark.skipif(not IS_THOROUGH, reason="runs only in make test")


def examples(number: int) -> int:
    """Return how many examples a test draws in this test run; Hypothesis draws different ones in each run."""
    return number if IS_THOROUGH else max(number // 8, 3)


def some_of(values: Sequence[Value]) -> Sequence[Value]:
    """Return the values for this test run: in `make check`, every eighth, and the last ones, which are at a limit."""
    return values if IS_THOROUGH else [*values[:-6:8], *values[-6:]]
