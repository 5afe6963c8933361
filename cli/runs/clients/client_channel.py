"""The connection of a client host to its client: messages and control lines on the standard streams."""

import json
import os
import select
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

STDIN, STDOUT = 0, 1
POLL_S = 0.5
# Once this much is waiting for the client, no more output of the command is read.
MAX_PENDING_BYTES = 64 << 10
START_DELAY_S = 1.0
"""How long the start of the command is delayed once all hosts are ready, so that they all know the time in advance."""


class ClientChannel:
    """Sends messages without blocking, and receives control lines.

    start_s  the time at which the command starts, on this machine's monotonic clock; None until it is known.
    signals  the signals for the command that have been received but not yet processed.
    """

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._last_s = time.monotonic()
        self._received = b""
        self._pending = bytearray()
        self._is_broken = False
        self.start_s: float | None = None
        self.signals: list[int] = []
        os.set_blocking(STDOUT, False)

    @property
    def is_full(self) -> bool:
        return len(self._pending) >= MAX_PENDING_BYTES

    def is_lost(self) -> bool:
        """Return whether the connection has ended, or there has been no heartbeat for the duration of the lease."""
        return self._is_broken or time.monotonic() - self._last_s >= self._lease_s

    def send(self, message: Mapping[str, Any]) -> None:
        """Queue a message for the next calls of `wait` to send; discard it if the connection has ended."""
        if not self._is_broken:
            self._pending += json.dumps(message).encode() + b"\n"

    def flush(self) -> None:
        """Wait until all messages have been sent, or the client is lost."""
        while self._pending and not self.is_lost():
            self.wait((), POLL_S)

    def wait(self, descriptors: Sequence[int], timeout_s: float) -> set[int]:
        """Wait until there is something to do; return which of the descriptors can be read."""
        poll = select.poll()
        for descriptor in descriptors:
            poll.register(descriptor, select.POLLIN)
        if not self._is_broken:
            poll.register(STDIN, select.POLLIN)
        if self._pending:
            poll.register(STDOUT, select.POLLOUT)
        ready = {descriptor for descriptor, _ in poll.poll(timeout_s * 1000)}
        if STDIN in ready:
            self._read()
        if STDOUT in ready:
            self._write()
        return ready.intersection(descriptors)

    def _read(self) -> None:
        data = os.read(STDIN, select.PIPE_BUF)
        if not data:
            self._break()
        self._last_s = time.monotonic()
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            name, _, value = line.partition(b" ")
            with suppress(ValueError):
                if name == b"start":
                    # If this machine's clock has been set since it was measured, the command must not wait for hours.
                    delay_s = min(float(value) - time.time(), 2 * START_DELAY_S)
                    self.start_s = time.monotonic() + delay_s
                elif name == b"signal":
                    self.signals.append(int(value))

    def _write(self) -> None:
        try:
            del self._pending[: os.write(STDOUT, self._pending)]
        except BlockingIOError:
            pass
        except OSError:
            self._break()

    def _break(self) -> None:
        self._is_broken = True
        self._pending.clear()
