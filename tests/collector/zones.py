"""Local time zones for tests."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

# The time zone rules of Paris in POSIX form, which does not require a time zone database.
CENTRAL_EUROPE = "CET-1CEST,M3.5.0,M10.5.0/3"


@contextmanager
def local_zone(name: str) -> Iterator[None]:
    """Set the local time zone, given in POSIX form or by name, until the block ends."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", name)
        time.tzset()
        try:
            yield
        finally:
            patch.undo()
            time.tzset()
