"""What systemd is told of the agent: see sd_notify(3), and `Type=notify` in systemd.service(5)."""

import contextlib
import os
import socket
import time
from collections.abc import Mapping


class Notifier:
    """Tells the service manager how the agent is; without one, nobody. It never fails: the agent goes on without."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Take where the service manager listens, and how often it wants to hear, from its variables."""
        self._address = environ.get("NOTIFY_SOCKET", "")
        mine = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        wanted = environ.get("WATCHDOG_USEC", "")
        self.watched = mine and wanted.isdigit() and int(wanted) > 0
        self._ready = False

    def alive(self, status: str) -> None:
        """Say that a tick was done, and how things are in a line; the first time also that the agent is ready."""
        lines = [f"STATUS={status}"]
        if self.watched:
            lines.append("WATCHDOG=1")
        if not self._ready:
            lines.append("READY=1")
            self._ready = True
        self._send(lines)

    def reloading(self) -> None:
        """Say that the settings are being read again; `alive` ends it."""
        self._ready = False
        self._send(["RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}"])

    def stopping(self) -> None:
        """Say that the agent is about to leave."""
        self._send(["STOPPING=1"])

    def _send(self, lines: list[str]) -> None:
        if not self._address:
            return
        # An abstract socket's name begins with a zero byte, which no variable can have.
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as to:
            to.setblocking(False)
            to.sendto("\n".join(lines).encode(errors="replace"), address)
