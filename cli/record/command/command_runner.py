"""Runs the command of a recorded run: passes its output through unchanged, keeps a copy, and forwards Ctrl-C.

If standard output is a terminal, the command runs on a pseudoterminal; otherwise, it writes to two pipes. If standard
input is a terminal as well, typed keys are passed on; otherwise, the command inherits standard input. A supervisor
process starts the command, and ends it if this process dies.

The carriage returns that a pseudoterminal adds at the ends of lines are not part of the copy.
"""

import contextlib
import errno
import fcntl
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
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from cli.process_setup import Handler, handling, new_pipe, open_standard_streams
from cli.record.command import supervised_command
from cli.record.command.output_observers import IDLE_S, OutputLog, OutputObserver
from cli.record.command.supervised_command import SUPERVISOR, CommandResult, Escalation, TimeLimit, result_in

REPORT_BYTES = 1 << 12
# How long to wait, after the command has ended, for output of processes that it left in the background.
DRAIN_S = 0.5
# How many bytes of typed input are kept for a command that does not read them.
TYPED_BYTES = 16 << 20
INTERRUPT = b"\x03"
# If more than this many seconds pass between two presses of Ctrl-C, the second one sends the first signal again. The
# limit is shorter if keys are passed on to the command, because Ctrl-C is common in interactive programs.
SUCCESSIVE_S = 10.0
SUCCESSIVE_KEYS_S = 2.0
OUTPUT_NAMES = ("standard output", "standard error")
# A closed pipe or terminal is not a problem; the command continues without it.
READER_IS_GONE = (errno.EPIPE, errno.EIO)
CHUNK_BYTES = 1 << 16
# If poll reports a terminal as writable, this many bytes can be written without blocking; for a pipe, PIPE_BUF bytes.
TERMINAL_CHUNK_BYTES = 1024
# A pseudoterminal's buffers hold fewer bytes than this.
TERMINAL_BYTES = 1 << 17


class CommandRunner:
    """Runs one command; `observer` follows its output, and `limit` ends it after a duration."""

    def __init__(
        self,
        command: Sequence[str],
        log: OutputLog,
        environ: Mapping[str, str],
        observer: OutputObserver | None = None,
        limit: TimeLimit | None = None,
    ) -> None:
        self._command = list(command)
        self._log = log
        self._environ = dict(environ)
        self._observer = observer or OutputObserver()
        self._limit = limit or TimeLimit()
        self._is_interrupted = False
        self._problems: list[str] = []
        self._carriage_return = b""
        self._terminal: _Pseudoterminal | None = None
        self._outputs: list[_Route] = []
        self._keys: _Route | None = None
        self._escalation = Escalation()
        self._control = -1
        self._is_abandoned = False

    def run(self) -> CommandResult:
        """Run the command and wait for it to end. Raises OSError if its supervisor cannot be started."""
        open_standard_streams()
        with ExitStack() as ours, ExitStack() as theirs:
            status, status_end = new_pipe(ours, theirs)
            control_end, self._control = os.pipe()
            theirs.callback(os.close, control_end)
            ours.callback(self._close_control)
            streams = self._connect(ours, theirs)
            ours.enter_context(handling(self._handlers()))
            slave = -1
            if self._terminal is not None:
                slave = self._terminal.slave
                self._terminal.copy_size()
            supervisor = subprocess.Popen(
                [*SUPERVISOR, str(control_end), str(status_end), str(slave), *self._command],
                stdin=streams[0],
                stdout=streams[1],
                stderr=streams[2],
                env=self._environ,
                pass_fds={control_end, status_end, slave} - {-1},
                start_new_session=True,
            )
            ours.callback(supervisor.wait)
            # After an error, closing the control pipe ends the command.
            ours.callback(self._close_control)
            theirs.close()
            if self._keys is not None:
                ours.enter_context(_raw_mode(0))
            self._limit.start()
            reports = self._relay(status)
            self._close_control()
            result = result_in(reports) or supervised_command.lost_supervisor(reports, supervisor.wait())
            result = replace(result, is_interrupted=True) if self._is_interrupted else self._limit.judged(result)
            self._drain()
            self._observer.end()
        return replace(result, problem="; ".join(filter(None, [result.problem, *self._problems])))

    def interrupt(self) -> None:
        """Send the command SIGINT; if called again within SUCCESSIVE_S, SIGTERM; and after that, SIGKILL."""
        self._forward(self._escalation.next_signal(SUCCESSIVE_S))

    def _forward(self, number: int) -> None:
        """Pass on a signal that this program has received."""
        self._is_interrupted = True
        self._send(number)

    def _send(self, number: int) -> None:
        """Send the command a signal; if it has already ended, stop waiting for the reader of its output."""
        if self._control < 0:
            self._is_abandoned = True
            return
        with contextlib.suppress(OSError):
            os.write(self._control, bytes([number]))

    def _close_control(self) -> None:
        control, self._control = self._control, -1
        if control >= 0:
            os.close(control)

    def _connect(self, ours: ExitStack, theirs: ExitStack) -> tuple[int, int, int]:
        """Return the command's standard streams, and set up the routes to and from them."""
        stdin = 0
        has_keys = os.isatty(0) and _is_in_foreground(0)
        if os.isatty(0) and not has_keys:
            # Another program is in the foreground and receives the keyboard input.
            stdin = os.open(os.devnull, os.O_RDONLY)
            theirs.callback(os.close, stdin)
        if not os.isatty(1):
            (out, out_end), (errors, errors_end) = new_pipe(ours, theirs), new_pipe(ours, theirs)
            self._outputs = [_Route(out, 1), _Route(errors, 2)]
            return stdin, out_end, errors_end
        self._terminal = _Pseudoterminal(ours, theirs)
        master, slave = self._terminal.master, self._terminal.slave
        self._outputs = [_Route(master, 1)]
        if not has_keys:
            return stdin, slave, slave
        self._keys = _Route(0, master, TYPED_BYTES)
        return slave, slave, slave

    def _handlers(self) -> dict[int, Handler]:
        """Return the handlers that forward signals to the command."""
        handlers: dict[int, Handler] = {
            signal.SIGINT: lambda *_: self.interrupt(),
            signal.SIGTERM: lambda number, _: self._forward(number),
            signal.SIGHUP: lambda number, _: self._forward(number),
        }
        terminal = self._terminal
        if terminal is not None:
            handlers[signal.SIGWINCH] = lambda *_: terminal.copy_size()
        return handlers

    def _relay(self, status: int) -> Mapping[str, Any]:
        """Pass data on until the command or its supervisor has ended; return the supervisor's reports."""
        received = b""
        while True:
            self._observe()
            number = self._limit.due_signal()
            if number is not None:
                self._send(number)
            ready = self._ready(self._limit.wait_s(IDLE_S), status)
            if status in ready:
                report = os.read(status, REPORT_BYTES)
                received += report
                reports = supervised_command.merged_reports(received)
                if not report or result_in(reports) is not None:
                    return reports
            if self._keys is not None:
                self._keys.add(self._scanned(self._keys.read(ready)))
                self._keys.write(ready)
            self._pass_on(ready)

    def _drain(self) -> None:
        """Pass on the rest of the output, however slow its reader is, but do not wait for background processes."""
        self._keys = None
        for output in self._outputs:
            output.end()
        remaining_s = DRAIN_S
        while not self._is_abandoned and any(output.source >= 0 or output.pending for output in self._outputs):
            self._observe()
            if any(output.pending for output in self._outputs):
                self._pass_on(self._ready(IDLE_S))
                continue
            began_s = time.monotonic()
            ready = self._ready(remaining_s)
            remaining_s = max(0.0, remaining_s - (time.monotonic() - began_s))
            if not ready:
                break
            self._pass_on(ready)
        self._log.write(self._carriage_return)
        for output, name in zip(self._outputs, OUTPUT_NAMES, strict=False):
            if output.error is not None and output.error.errno not in READER_IS_GONE:
                self._problems.append(f"{name}: {output.error.strerror}")

    def _observe(self) -> None:
        if not any(output.pending for output in self._outputs):
            self._observer.after_output()

    def _ready(self, timeout_s: float, *others: int) -> Mapping[int, int]:
        """Wait until a route or one of the other descriptors is ready, and return the events by descriptor."""
        wanted = defaultdict(int, dict.fromkeys(others, select.POLLIN))
        for route in (*self._outputs, *([] if self._keys is None else [self._keys])):
            for descriptor, event in route.awaited():
                wanted[descriptor] |= event
        poll = select.poll()
        for descriptor, events in wanted.items():
            poll.register(descriptor, events)
        return dict(poll.poll(timeout_s * 1000))

    def _pass_on(self, ready: Mapping[int, int]) -> None:
        for output in self._outputs:
            output.write(ready)
            data = output.read(ready)
            if data:
                self._keep(data, output.target)
                self._observer.before_output(data, output.target)
                output.add(data)

    def _keep(self, data: bytes, stream: int) -> None:
        if self._terminal is not None:
            data = self._carriage_return + data
            self._carriage_return = b"\r" if data.endswith(b"\r") else b""
            data = data.removesuffix(b"\r").replace(b"\r\n", b"\n")
        self._log.write(data, stream)

    def _scanned(self, keys: bytes) -> bytes:
        """Return the keys to pass on. As on a terminal, Ctrl-C discards earlier keys; if repeated, it sends signals.

        When Ctrl-C is passed on, the pseudoterminal itself sends SIGINT to its foreground process group.
        """
        if self._keys is None or self._terminal is None or INTERRUPT not in keys:
            return keys
        if not self._terminal.turns_ctrl_c_into_a_signal():
            return keys
        self._keys.pending.clear()
        self._terminal.discard_input()
        self._is_interrupted = True
        for _ in range(keys.count(INTERRUPT)):
            number = self._escalation.next_signal(SUCCESSIVE_KEYS_S)
            if number != signal.SIGINT:
                self._send(number)
        return keys[keys.rindex(INTERRUPT) :]


class _Pseudoterminal:
    """A new pseudoterminal; the stack `ours` closes `master`, and `theirs` closes `slave`."""

    def __init__(self, ours: ExitStack, theirs: ExitStack) -> None:
        self.master, self.slave = pty.openpty()
        ours.callback(os.close, self.master)
        theirs.callback(os.close, self.slave)
        os.set_blocking(self.master, False)
        self._path = os.ttyname(self.slave)

    def copy_size(self) -> None:
        """Set the pseudoterminal's size to that of the real terminal, which is standard output."""
        with contextlib.suppress(OSError):
            size = fcntl.ioctl(1, termios.TIOCGWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)

    def turns_ctrl_c_into_a_signal(self) -> bool:
        """Return whether Ctrl-C sends SIGINT; full-screen programs turn this off."""
        return bool(termios.tcgetattr(self.master)[3] & termios.ISIG)

    def discard_input(self) -> None:
        """Discard input that the command has not read; Ctrl-C would have no effect if the buffer were full."""
        with contextlib.suppress(OSError, termios.error):
            slave = os.open(self._path, os.O_RDWR | os.O_NOCTTY)
            try:
                termios.tcflush(slave, termios.TCIFLUSH)
            finally:
                os.close(slave)


def _is_in_foreground(descriptor: int) -> bool:
    """Return whether this process may read from a terminal; the kernel stops background jobs that do."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return False


@contextmanager
def _raw_mode(descriptor: int) -> Iterator[None]:
    """Put a terminal into raw mode; characters that have already been typed are kept."""
    before = termios.tcgetattr(descriptor)
    tty.setraw(descriptor, termios.TCSADRAIN)
    try:
        yield
    finally:
        # The terminal may have been closed.
        with contextlib.suppress(termios.error):
            if _is_in_foreground(descriptor):
                termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


class _Route:
    """Data that is read from `source`, kept in `pending`, and written to `target`, without blocking on either.

    The descriptors' flags are not changed, because other processes, which share a terminal or pipe, do not expect it to
    become non-blocking.

    capacity_bytes  nothing more is read while at least this many bytes are pending.
    source          -1 after its end.
    error           why writing to the target failed; None if it did not. After an error, all data is discarded.
    """

    def __init__(self, source: int, target: int, capacity_bytes: int = 1) -> None:
        self.source = source
        self.pending = bytearray()
        self.error: OSError | None = None
        self.target = target
        self._capacity_bytes = capacity_bytes
        self._chunk_bytes = TERMINAL_CHUNK_BYTES if os.isatty(target) else select.PIPE_BUF
        self._remaining_bytes = sys.maxsize

    def awaited(self) -> Iterator[tuple[int, int]]:
        """Yield the descriptors and events to wait for."""
        if self.source >= 0 and len(self.pending) < self._capacity_bytes:
            yield self.source, select.POLLIN
        if self.pending:
            yield self.target, select.POLLOUT

    def read(self, ready: Container[int]) -> bytes:
        """Return the data available from the source, if poll has reported it as ready."""
        if self.source not in ready or len(self.pending) >= self._capacity_bytes:
            return b""
        try:
            data = os.read(self.source, min(CHUNK_BYTES, self._remaining_bytes))
        except BlockingIOError:
            return b""
        except OSError as error:
            # A terminal reports the end of its data as an error.
            if error.errno != errno.EIO:
                raise
            data = b""
        self._remaining_bytes -= len(data)
        if not data or not self._remaining_bytes:
            self.source = -1
        return data

    def add(self, data: bytes) -> None:
        """Append data to be written."""
        if self.error is None:
            self.pending += data

    def write(self, ready: Container[int]) -> None:
        """Write pending data, if poll has reported the target as ready."""
        if not self.pending or self.target not in ready:
            return
        try:
            written = os.write(self.target, self.pending[: self._chunk_bytes])
        except BlockingIOError:
            return
        except OSError as error:
            self.error = error
            self.pending.clear()
        else:
            del self.pending[:written]

    def end(self) -> None:
        """Read no more than the source can contain now, in case other processes go on writing to it."""
        if self.source < 0:
            return
        try:
            self._remaining_bytes = fcntl.fcntl(self.source, fcntl.F_GETPIPE_SZ)
        except OSError:
            self._remaining_bytes = TERMINAL_BYTES
