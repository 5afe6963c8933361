"""Signals, the end of an agent with the process that started it, and notifications to systemd.

That process holds the other end of the pipe that is the agent's input. See sd_notify(3), and `Type=notify` in
systemd.service(5).
"""

import contextlib
import ctypes
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType

from collector.model.clock import SystemClock

END_WITH_INPUT = "CASSTAT_END_WITH_INPUT"
"""The environment variable that asks an agent to end at the end of its input."""
FALLBACK_NODE = "CASSTAT_FALLBACK_NODE"
"""The environment variable with the name of a node that an agent has never identified."""
# prctl(2): the signal that a process gets when its parent dies.
PR_SET_PDEATHSIG = 1
# While sleeping, the clock calls its `idle` function at least this often.
PIECE_S = 5.0
# After a stop signal, the current tick has this much time to finish before it is abandoned.
GRACE_S = 1.5


def end_with_input(environ: Mapping[str, str]) -> None:
    """If END_WITH_INPUT is set, end this process at the end of its input, but not when its parent dies before."""
    if environ.get(END_WITH_INPUT):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0)
        threading.Thread(target=_wait, name="input", daemon=True).start()


def _wait() -> None:
    while os.read(0, 1 << 10):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


class Notifier:
    """Notifies the service manager, if there is one. Errors are ignored, because notifications are optional."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Read the service manager's socket and watchdog settings from the environment."""
        self._address = environ.get("NOTIFY_SOCKET", "")
        for_this_process = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        watchdog_usec = environ.get("WATCHDOG_USEC", "")
        self.watched = for_this_process and watchdog_usec.isdigit() and int(watchdog_usec) > 0
        self._ready = False

    def alive(self, status: str) -> None:
        """Report a finished tick and a status line.

        The first call, and the first after a reload, also reports readiness.
        """
        lines = [f"STATUS={status}"]
        if self.watched:
            lines.append("WATCHDOG=1")
        if not self._ready:
            lines.append("READY=1")
            self._ready = True
        self._send(lines)

    def reloading(self) -> None:
        """Report that the settings are being reloaded; the next `alive` ends this state."""
        self._ready = False
        self._send(["RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}"])

    def stopping(self) -> None:
        self._send(["STOPPING=1"])

    def _send(self, lines: list[str]) -> None:
        if not self._address:
            return
        # The name of an abstract socket begins with a zero byte, which an environment variable cannot contain.
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as to:
            to.setblocking(False)
            to.sendto("\n".join(lines).encode(errors="replace"), address)


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
