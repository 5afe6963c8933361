"""Clock synchronisation: the kernel's NTP state and error bound."""

import ctypes
import os
from dataclasses import dataclass

# From <sys/timex.h>.
STA_UNSYNC = 0x0040


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


def read() -> ClockState:
    """Return the kernel clock's state, using adjtimex(2) without changing anything.

    Raises OSError, and AttributeError if the C library has no adjtimex.
    """
    timex = Timex()
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex)) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return ClockState(not timex.status & STA_UNSYNC, timex.maxerror / 1e6, timex.esterror / 1e6)
