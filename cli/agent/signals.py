"""Signals that the agent listens to, and a clock whose sleep they end."""

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from collector.model.clock import SystemClock

# So often, at least, a sleep looks after what else is to be done.
PIECE_S = 5.0
# To finish the tick that is being read, before it is given up.
GRACE_S = 1.5


class StoppedError(Exception):
    """Somebody wants the agent to end."""


class Signals:
    """What came: `stopping` stays, `hangup` is for whoever handles it to put back.

    While `sheltered` is set, nothing is interrupted.
    """

    def __init__(self, wake: int) -> None:
        """Take the end of a pipe that can be read when a signal has come."""
        self.stopping = False
        self.hangup = False
        self.sheltered = False
        self._wake = wake

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """Take note of a signal."""
        if number == signal.SIGHUP:
            self.hangup = True
        elif number == signal.SIGALRM:
            # A node that hangs must not hold up the end.
            if not self.sheltered:
                raise StoppedError
        else:
            self.stopping = True
            signal.setitimer(signal.ITIMER_REAL, GRACE_S)

    def wait(self, seconds: float) -> None:
        """Return after so long, or when a signal comes."""
        ready, _, _ = select.select([self._wake], [], [], max(seconds, 0.0))
        if ready:
            with suppress(BlockingIOError):
                os.read(self._wake, 4096)


@contextmanager
def listening() -> Iterator[Signals]:
    """Listen to SIGTERM, SIGINT and SIGHUP in the block."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    signals = Signals(read)
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM)
    before = {number: signal.signal(number, signals.handle) for number in numbers}
    wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    try:
        yield signals
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(read)
        os.close(write)


class AgentClock(SystemClock):
    """The machine's clocks; a sleep ends with StoppedError when the agent is to end."""

    def __init__(self, signals: Signals, idle: Callable[[], None]) -> None:
        """Take the signals, and what is to be done while nothing else is."""
        self._signals = signals
        self._idle = idle

    def sleep(self, seconds: float) -> None:
        """Return after at least `seconds`. Raises StoppedError."""
        ends_s = self.monotonic_s() + seconds
        while True:
            if self._signals.stopping:
                raise StoppedError
            self._idle()
            if (rest_s := ends_s - self.monotonic_s()) <= 0:
                return
            self._signals.wait(min(rest_s, PIECE_S))
