"""Starts a command in a new session for another process, the owner, and ends the command when the owner dies.

Usage: python -IS supervisor.py CONTROL STATUS TERMINAL COMMAND [ARGUMENT]...

The first three arguments are file descriptors. Each byte from CONTROL is the number of a signal to send to the command;
on end-of-file, when the owner has closed CONTROL or died, the supervisor ends the command. The supervisor writes a
report, a JSON object on a line, to STATUS before the command starts and after it has ended. TERMINAL is the command's
controlling terminal, or -1. The command inherits the standard streams, and ignores the signals that the owner ignores.
If the supervisor itself is killed, the command gets SIGTERM, and the owner ends the rest of the command's session. This
program uses only the standard library.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

# A command that outlives its owner gets SIGTERM, and SIGKILL after this time.
GRACE_S = 5.0
# How long to wait for processes that are about to exit.
ENDING_S = 0.25
POLL_S = 0.05
# Signals that this program ignores; the owner decides which signals the command gets.
IGNORED = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGTSTP)
# Signals that Python ignores.
IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
# prctl(2): the signal that a process gets when its parent dies. execve(2) keeps it.
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)
NOT_FOUND, NOT_EXECUTABLE = 127, 126


def main(arguments: Sequence[str]) -> int:
    """Run the command; return 0 once it has ended, or 126 or 127 if it could not be started."""
    control, status, terminal = map(int, arguments[:3])
    default = [number for number in IGNORED if signal.getsignal(number) != signal.SIG_IGN]
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    for descriptor in (control, status):
        os.set_inheritable(descriptor, False)
    child_ended = _child_signals()
    own_pid = os.getpid()
    try:
        command = subprocess.Popen(
            arguments[3:],
            preexec_fn=lambda: _prepare(own_pid, status, terminal, [*default, *IGNORED_BY_PYTHON]),
            restore_signals=False,
            pass_fds=(),
        )
    except OSError as error:
        code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
        _report(status, {"failed": error.strerror, "code": code})
        return code
    orphaned = _supervise(command, control, child_ended)
    code = command.wait()
    _report(status, {"ended": code, "left": not orphaned and _are_left(command.pid)})
    return 0


def _are_left(session: int) -> bool:
    """Return whether processes of a session are still running, after waiting for those that are about to exit."""
    ends_s = time.monotonic() + ENDING_S
    while (are_left := bool(_members(session))) and time.monotonic() < ends_s:
        time.sleep(POLL_S)
    return are_left


def _child_signals() -> int:
    """Return a descriptor that becomes readable when a child exits; unlike a pidfd, it works on all kernels."""
    signals, wakeup = os.pipe()
    for descriptor in (signals, wakeup):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(wakeup)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return signals


def _prepare(parent: int, status: int, terminal: int, default: Collection[int]) -> None:
    """Prepare the command's process between fork and exec; reset the signals in `default` to their default actions."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        # The supervisor has been killed since the fork.
        os._exit(NOT_EXECUTABLE)
    os.setsid()
    # Report the PID before the command runs, because the command may kill this program.
    _report(status, {"pid": os.getpid()})
    if terminal >= 0:
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    for number in default:
        signal.signal(number, signal.SIG_DFL)


def _supervise(command: "subprocess.Popen[bytes]", control: int, child_ended: int) -> bool:
    """Forward signals until the command has ended, or end it if the owner dies; return whether the owner has died."""
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(child_ended, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if control in ready:
            numbers = os.read(control, 16)
            for number in numbers:
                send(command.pid, number)
            if not numbers:
                end(command.pid, lambda: command.poll() is None)
                return True
        if child_ended in ready:
            os.read(child_ended, 16)
            if command.poll() is not None:
                return False


def end(session: int, is_running: Callable[[], bool] = lambda: False) -> None:
    """Terminate all processes of a session; kill those that still exist after GRACE_S.

    `is_running` returns whether the session's leader may not have created the session yet.
    """
    ends_s = time.monotonic() + GRACE_S
    send(session, signal.SIGTERM)
    while (is_running() or _members(session)) and time.monotonic() < ends_s:
        time.sleep(POLL_S)
    send(session, signal.SIGKILL)


def send(session: int, number: int) -> None:
    """Send a signal to all processes of a session; SIGINT only to its terminal's foreground group, as Ctrl-C does."""
    members = _members(session)
    groups = {group for group, _ in members}
    if number == signal.SIGINT:
        groups = {foreground for _, foreground in members if foreground > 0}
    for group in groups or {session}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def _members(session: int) -> list[tuple[int, int]]:
    """Return the process group and the terminal's foreground group (-1: no terminal) of each process of a session.

    Zombies, which a container's init process may never reap, do not count.
    """
    members = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, group, member_of, _, foreground, *_ = path.read_text(errors="replace").rpartition(")")[2].split()
            if int(member_of) == session and state != "Z":
                members.append((int(group), int(foreground)))
    return members


def _report(status: int, content: dict[str, object]) -> None:
    # The owner may have died.
    with contextlib.suppress(OSError):
        os.write(status, json.dumps(content).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
