"""Local time zones for tests."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

# The rules of Paris, spelled out so that no time zone database is needed.
CENTRAL_EUROPE = "CET-1CEST,M3.5.0,M10.5.0/3"


@contextmanager
def local_zone(name: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", name)
        time.tzset()
        try:
            yield
        finally:
            patch.undo()
            time.tzset()
