"""Runs the command of a recorded run: passes its output through unchanged, keeps a copy, and forwards Ctrl-C.

If the standard output is a terminal, the command runs on a pseudoterminal, otherwise on two pipes. A supervisor process
starts the command and ends it if this process dies.
"""

import contextlib
import errno
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import tty
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Protocol

from cli.runs import supervisor as supervisor_program

CHUNK_BYTES = 1 << 16
SUPERVISOR = (sys.executable, str(supervisor_program.__file__))
"""Starts the supervisor; not as a module, because a directory `cli` in the working directory would be used instead."""
# After the command has ended, its remaining output is read for up to this time. It may take longer if the command has
# left processes in the background that keep the output open.
DRAIN_S = 0.5
# How often an observer is called while there is no output.
IDLE_S = 0.25
INTERRUPT = b"\x03"
# The signals that successive presses of Ctrl-C send.
ESCALATION = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


@dataclass(frozen=True)
class CommandResult:
    """How the command ended.

    exit_code  as a shell reports it: 128 plus the number of a signal, 127 if the command was not found, or 126 if it
               is not executable.
    problem    why the command could not be started; "" if it was.
    left       whether processes of the command are still running in the background.
    """

    exit_code: int
    problem: str = ""
    left: bool = False


LOST = CommandResult(1, "the command's supervisor has been killed")


class OutputLog(Protocol):
    """Receives a copy of the command's output."""

    def write(self, data: bytes, /) -> object:
        """Append output."""


class OutputObserver:
    """Follows the output of a command; all methods are called in the runner's thread. By default, they do nothing."""

    def before_output(self, data: bytes) -> None:
        """Receive output that is about to be passed through."""

    def after_output(self) -> None:
        """Act after output has been passed through, and at least every IDLE_S."""


class CommandRunner:
    """Runs one command; `observer` follows its output."""

    def __init__(
        self,
        command: Sequence[str],
        log: OutputLog,
        environ: Mapping[str, str],
        observer: OutputObserver | None = None,
    ) -> None:
        self._command = list(command)
        self._log = log
        self._environ = dict(environ)
        self._observer = observer or OutputObserver()
        self._interrupts = 0
        self._control = -1

    def run(self) -> CommandResult:
        """Run the command until it has ended. Raises OSError if the log cannot be written."""
        with ExitStack() as stack:

            def pipe() -> tuple[int, int]:
                """Return the ends of a new pipe: ours to read, which the stack closes, and the command's to write."""
                ours, theirs = os.pipe()
                stack.callback(os.close, ours)
                return ours, theirs

            status, status_end = pipe()
            control_end, self._control = os.pipe()
            stack.callback(os.close, self._control)
            if os.isatty(1):
                master, slave = pty.openpty()
                stack.callback(os.close, master)
                _copy_size(master)
                streams, routes = (slave, slave, slave), {master: 1}
            else:
                (out, out_end), (errors, errors_end) = pipe(), pipe()
                master = slave = -1
                streams, routes = (0, out_end, errors_end), {out: 1, errors: 2}
            theirs = {control_end, status_end, *streams, slave} - {0, -1}
            words = [str(control_end), str(status_end), str(slave), *self._command]
            try:
                supervisor = subprocess.Popen(
                    [*SUPERVISOR, *words],
                    stdin=streams[0],
                    stdout=streams[1],
                    stderr=streams[2],
                    env=self._environ,
                    pass_fds=theirs - set(streams) | {slave} - {-1},
                    start_new_session=True,
                )
            finally:
                for descriptor in theirs:
                    os.close(descriptor)
            stack.enter_context(self._forwarding_signals(master))
            if master >= 0 and os.isatty(0):
                stack.enter_context(_raw(0))
                routes[0] = master
            result = self._relay(status, routes, master)
            supervisor.wait()
            return result

    @contextmanager
    def _forwarding_signals(self, master: int) -> Iterator[None]:
        def interrupt(*_: object) -> None:
            self.interrupt()

        def terminate(number: int, _: FrameType | None) -> None:
            self._send(number)

        handlers: dict[int, Any] = {signal.SIGINT: interrupt, signal.SIGTERM: terminate, signal.SIGHUP: terminate}
        if master >= 0:
            handlers[signal.SIGWINCH] = lambda *_: _copy_size(master)
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def interrupt(self) -> None:
        """Send the command SIGINT, at the second call SIGTERM, and from the third on SIGKILL."""
        self._send(ESCALATION[min(self._interrupts, len(ESCALATION) - 1)])
        self._interrupts += 1

    def _send(self, number: int) -> None:
        with contextlib.suppress(OSError):
            os.write(self._control, bytes([number]))

    def _relay(self, status: int, routes: dict[int, int], master: int) -> CommandResult:
        """Copy data along the routes until the command has ended and its output has been read."""
        pending = b""
        result: CommandResult | None = None
        ends_s = 0.0
        open_routes = dict(routes)
        while result is None or any(source != 0 for source in open_routes):
            timeout_s = IDLE_S if result is None else ends_s - time.monotonic()
            if timeout_s <= 0:
                break
            self._observer.after_output()
            ready, _, _ = select.select([*open_routes, *([status] if result is None else [])], [], [], timeout_s)
            if not ready and result is not None:
                break
            for source in ready:
                if source == status:
                    report = os.read(status, CHUNK_BYTES)
                    pending += report
                    result = _result_in(pending) if report else LOST
                    ends_s = time.monotonic() + DRAIN_S
                elif not self._copied(source, open_routes[source], master):
                    del open_routes[source]
        return result or LOST

    def _copied(self, source: int, to: int, master: int) -> bool:
        """Copy what can be read; return False at the end of the input."""
        try:
            data = os.read(source, CHUNK_BYTES)
        except OSError as error:
            # A pseudoterminal reports the end of the output as an error.
            if error.errno != errno.EIO:
                raise
            data = b""
        if source == 0:
            self._typed(data, master)
            return bool(data)
        if data:
            self._log.write(data)
            self._observer.before_output(data)
            _write_all(to, data)
        return bool(data)

    def _typed(self, data: bytes, master: int) -> None:
        """Forward typed characters; a second and third Ctrl-C terminate and kill a command that does not read them."""
        if INTERRUPT in data and termios.tcgetattr(master)[3] & termios.ISIG:
            for _ in range(data.count(INTERRUPT)):
                self.interrupt()
            data = data.replace(INTERRUPT, b"")
        _write_all(master, data)


def _result_in(pending: bytes) -> CommandResult | None:
    """Return the result in the supervisor's reports, or None if the command is still running."""
    for line in pending.splitlines(keepends=True):
        if not line.endswith(b"\n"):
            return None
        content = json.loads(line)
        if "failed" in content:
            return CommandResult(int(content["code"]), str(content["failed"]))
        if "ended" in content:
            code = int(content["ended"])
            return CommandResult(code if code >= 0 else 128 - code, left=bool(content["left"]))
    return None


def _copy_size(master: int) -> None:
    """Give the pseudoterminal the size of the real terminal."""
    with contextlib.suppress(OSError):
        size = fcntl.ioctl(1, termios.TIOCGWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
        fcntl.ioctl(master, termios.TIOCSWINSZ, size)


@contextmanager
def _raw(descriptor: int) -> Iterator[None]:
    """Put a terminal into raw mode; characters that have already been typed are kept."""
    before = termios.tcgetattr(descriptor)
    tty.setraw(descriptor, termios.TCSADRAIN)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
