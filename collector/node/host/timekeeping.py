"""Clock synchronisation: the kernel's NTP state and error bound (adjtimex(2)).

If clocks are not synchronised, rows from different nodes are not comparable.
"""

import ctypes
import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from collector.model.metric import Aggregation, Kind, Metric, Owner, ScrapeInterval, Values
from collector.node.host.kernel_files import Host

# From <sys/timex.h>.
STA_UNSYNC = 0x0040
_gauge = partial(Metric, kind=Kind.GAUGE, scrape_interval=ScrapeInterval.SLOW, owner=Owner.MACHINE)
_ERROR, _SYNCHRONISED = METRICS = (
    _gauge(
        "casstat_clock_error_seconds",
        unit="seconds",
        help="Maximum error of the machine's clock as estimated by the kernel, in seconds; absent if not synchronised.",
        across=Aggregation.MAX,
    ),
    _gauge(
        "casstat_clock_synchronised",
        unit="1",
        help="Whether the machine's clock is synchronised: 1 or 0.",
        across=Aggregation.MIN,
    ),
)


class Timex(ctypes.Structure):
    """The first fields of the kernel's struct timex (adjtimex(2)), with space for the remaining ones."""

    _fields_ = [
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * 512),
    ]


@dataclass(frozen=True)
class ClockState:
    """Whether the kernel's clock is synchronised, and its maximum and estimated error in seconds."""

    synchronised: bool
    max_error_s: float
    estimated_error_s: float


def clock_state() -> ClockState:
    """Return the kernel clock's state, using adjtimex(2) without changing anything.

    Raises OSError, and AttributeError if the C library has no adjtimex.
    """
    timex = Timex()
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex)) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return ClockState(not timex.status & STA_UNSYNC, timex.maxerror / 1e6, timex.esterror / 1e6)


def read(host: Host) -> Values:
    """Read the kernel's clock state; return no values if it is unavailable, or if `host` reads a captured file tree."""
    if host.root != Path("/"):
        return {}
    try:
        state = clock_state()
    except (OSError, AttributeError):
        # A container's seccomp profile may forbid adjtimex.
        return {}
    if not state.synchronised:
        return {(_SYNCHRONISED.name,): 0}
    return {(_SYNCHRONISED.name,): 1, (_ERROR.name,): state.max_error_s}
