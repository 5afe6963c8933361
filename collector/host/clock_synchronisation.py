"""What the kernel says of its own clock: whether something keeps it right, and how far off it may be."""

import ctypes
import os
from dataclasses import dataclass

# Of <sys/timex.h>.
STA_UNSYNC = 0x0040


class Timex(ctypes.Structure):
    """The beginning of the kernel's struct timex (adjtimex(2)), and room for the rest."""

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
    """How the kernel's clock is kept: whether it is, and the largest and the likely error, seconds."""

    synchronised: bool
    largest_s: float
    likely_s: float


def read() -> ClockState:
    """Return what the kernel says of its clock (adjtimex(2), which changes nothing here). Raises OSError."""
    timex = Timex()
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex)) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return ClockState(not timex.status & STA_UNSYNC, timex.maxerror / 1e6, timex.esterror / 1e6)
