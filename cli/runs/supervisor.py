"""Starts a command in a session of its own for another process, its owner, and ends the command when the owner dies.

Usage: python supervisor.py CONTROL STATUS TERMINAL COMMAND [ARGUMENT]...

The first three arguments are file descriptors. Each byte from CONTROL is the number of a signal to send to the command,
and the end of CONTROL means that the owner has died. STATUS receives a JSON object per line: when the command has
started, and when it has ended. TERMINAL is the command's controlling terminal, or -1. The command inherits the standard
streams.
"""

import contextlib
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path

# A command that outlives its owner gets SIGTERM, and SIGKILL after this time.
GRACE_S = 5.0
POLL_S = 0.05
# Signals that a terminal sends to all its processes; the owner decides about them.
IGNORED = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGTSTP)
NOT_FOUND, NOT_EXECUTABLE = 127, 126


def main(arguments: Sequence[str]) -> int:
    """Run the command until it has ended."""
    control, status, terminal = map(int, arguments[:3])
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    for descriptor in (control, status):
        os.set_inheritable(descriptor, False)
    try:
        command = subprocess.Popen(arguments[3:], preexec_fn=lambda: _prepare(terminal), pass_fds=())
    except OSError as error:
        code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
        _report(status, {"failed": error.strerror, "code": code})
        return code
    _report(status, {"pid": command.pid})
    orphaned = _supervise(command, control)
    code = command.wait()
    _report(status, {"ended": code, "left": not orphaned and _has_members(command.pid)})
    return 0


def _prepare(terminal: int) -> None:
    """Prepare the command's process between fork and exec."""
    os.setsid()
    if terminal >= 0:
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    for number in IGNORED:
        signal.signal(number, signal.SIG_DFL)


def _supervise(command: "subprocess.Popen[bytes]", control: int) -> bool:
    """Forward signals until the command has ended, or end it if the owner dies; return whether the owner has died."""
    ended = os.pidfd_open(command.pid)
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(ended, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if control in ready:
            numbers = os.read(control, 16)
            for number in numbers:
                _send(command.pid, number)
            if not numbers:
                _end(command)
                return True
        if ended in ready:
            return False


def _end(command: "subprocess.Popen[bytes]") -> None:
    """End all processes of the command's group."""
    ends_s = time.monotonic() + GRACE_S
    _send(command.pid, signal.SIGTERM)
    # Until it is waited for, the command's own process counts as a member.
    while (command.poll() is None or _has_members(command.pid)) and time.monotonic() < ends_s:
        time.sleep(POLL_S)
    _send(command.pid, signal.SIGKILL)


def _send(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _has_members(group: int) -> bool:
    """Return whether a group has processes other than zombies, which a container's init process may never reap."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, member_of, *_ = path.read_text(errors="replace").rpartition(")")[2].split()
            if int(member_of) == group and state != "Z":
                return True
    return False


def _report(status: int, content: dict[str, object]) -> None:
    # The owner may have died.
    with contextlib.suppress(OSError):
        os.write(status, json.dumps(content).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
