"""Ends an agent with the process that started it, which holds the other end of the pipe that is the agent's input."""

import ctypes
import os
import signal
import threading
from collections.abc import Mapping

END_WITH_INPUT = "CASSTAT_END_WITH_INPUT"
"""The environment variable that asks an agent to end at the end of its input."""
# prctl(2): the signal that a process gets when its parent dies.
PR_SET_PDEATHSIG = 1


def end_with_input(environ: Mapping[str, str]) -> None:
    """If END_WITH_INPUT is set, end this process at the end of its input, but not when its parent dies before."""
    if environ.get(END_WITH_INPUT):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0)
        threading.Thread(target=_wait, name="input", daemon=True).start()


def _wait() -> None:
    while os.read(0, 1 << 10):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
