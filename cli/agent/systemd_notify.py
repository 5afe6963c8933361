"""Notifications to systemd: see sd_notify(3), and `Type=notify` in systemd.service(5)."""

import contextlib
import os
import socket
import time
from collections.abc import Mapping


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
        """Report that the agent is stopping."""
        self._send(["STOPPING=1"])

    def _send(self, lines: list[str]) -> None:
        if not self._address:
            return
        # The name of an abstract socket begins with a zero byte, which an environment variable cannot contain.
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as to:
            to.setblocking(False)
            to.sendto("\n".join(lines).encode(errors="replace"), address)
