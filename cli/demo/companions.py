"""The programs that `casstat demo up --with NAME` starts alongside the nodes.

A companion is a module that implements the `Companion` protocol.
"""

import signal
import threading
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Protocol

from cli.demo import demo_prometheus
from cli.demo.running_cluster import RunningCluster

POLL_S = 1.0


class Companion(Protocol):
    """One or more programs that run alongside the cluster."""

    def check(self) -> None:
        """Raise DemoError if the companion cannot run on this machine; called before anything starts."""

    def start(self, running: RunningCluster) -> list[str]:
        """Start the programs and return lines to print. Raises DemoError."""


COMPANIONS: Mapping[str, Companion] = {"prometheus": demo_prometheus}


def wait_for_signal(is_running: Callable[[], bool]) -> None:
    """Wait for Ctrl-C or SIGTERM, or until all programs have exited."""
    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    while is_running() and not stop.wait(POLL_S):
        pass
