"""Installs signal handlers for the duration of a block."""

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], object]


@contextmanager
def handling(handlers: Mapping[int, Handler]) -> Iterator[None]:
    """Handle signals, except those that are ignored, for instance because of nohup."""
    before = {
        number: signal.signal(number, handler)
        for number, handler in handlers.items()
        if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
