"""Control of Python's cyclic garbage collector."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

RARE_THRESHOLD = 200_000
"""The number of new objects after which the collector runs."""


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the collector while many objects are created; it would take much of the time without finding any cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def gc_rarely() -> Iterator[None]:
    """Run the collector rarely, for a program that creates and frees many objects per second, but few cycles.

    With the default thresholds, it would examine all objects every few seconds.
    """
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(RARE_THRESHOLD, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()
