"""Signal handling, and a clock that stops sleeping when a stop signal arrives."""

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from collector.model.clock import SystemClock

# While sleeping, the clock calls its `idle` function at least this often.
PIECE_S = 5.0
# After a stop signal, the current tick has this much time to finish before it is abandoned.
GRACE_S = 1.5


class StoppedError(Exception):
    """Raised when a signal has told the agent to stop."""


class Signals:
    """The received signals: `stopping` stays set; `hangup` is cleared by the code that acts on it.

    While `uninterruptible` is set, the current work is finished even if the grace period has ended.
    """

    def __init__(self, wake: int) -> None:
        """`wake` is the read end of a pipe that becomes readable when a signal arrives."""
        self.stopping = False
        self.hangup = False
        self.uninterruptible = False
        self._wake = wake

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """Record a signal. A stop signal also starts the grace period, after which StoppedError is raised."""
        if number == signal.SIGHUP:
            self.hangup = True
        elif number == signal.SIGALRM:
            # A hung node must not delay the exit.
            if not self.uninterruptible:
                raise StoppedError
        else:
            self.stopping = True
            signal.setitimer(signal.ITIMER_REAL, GRACE_S)

    def wait(self, seconds: float) -> None:
        """Wait for `seconds`, or until a signal arrives."""
        ready, _, _ = select.select([self._wake], [], [], max(seconds, 0.0))
        if ready:
            with suppress(BlockingIOError):
                os.read(self._wake, 4096)


@contextmanager
def listening() -> Iterator[Signals]:
    """Handle SIGTERM, SIGINT and SIGHUP within the block."""
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
    """The system's clocks; a sleep raises StoppedError when a signal has told the agent to stop."""

    def __init__(self, signals: Signals, idle: Callable[[], None]) -> None:
        """Watch `signals` during a sleep, and call `idle` at least every PIECE_S seconds."""
        self._signals = signals
        self._idle = idle

    def sleep(self, seconds: float) -> None:
        """Sleep for at least `seconds`. Raises StoppedError."""
        ends_s = self.monotonic_s() + seconds
        while True:
            if self._signals.stopping:
                raise StoppedError
            self._idle()
            if (rest_s := ends_s - self.monotonic_s()) <= 0:
                return
            self._signals.wait(min(rest_s, PIECE_S))
