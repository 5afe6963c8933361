"""Local time zones for tests."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

# The rules of Paris as a POSIX time zone, which needs no time zone database.
CENTRAL_EUROPE = "CET-1CEST,M3.5.0,M10.5.0/3"


@contextmanager
def local_zone(name: str) -> Iterator[None]:
    """Set the local time zone, a POSIX time zone or a name, until the block ends."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", name)
        time.tzset()
        try:
            yield
        finally:
            patch.undo()
            time.tzset()
