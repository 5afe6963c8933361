"""What `casstat demo up --with NAME` starts beside the nodes. One more is one more module with `check` and `start`."""

import signal
import threading
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Protocol

from cli.demo import demo_prometheus
from cli.demo.cluster_addresses import ClusterAddresses

LOOK_S = 1.0


class Companion(Protocol):
    """A program, or several, that the cluster has beside it."""

    def check(self) -> None:
        """Raise DemoError when it cannot be started here: before anything else is."""

    def start(self, site: ClusterAddresses) -> list[str]:
        """Start it and return what to tell people, by lines. Raises DemoError."""


COMPANIONS: Mapping[str, Companion] = {"prometheus": demo_prometheus}


def until_told(runs: Callable[[], bool]) -> None:
    """Return on Ctrl-C, on SIGTERM, or when nothing runs any more."""
    told = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        told.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    while runs() and not told.wait(LOOK_S):
        pass
