"""Runs the command of a recorded run: passes its output through unchanged, keeps a copy, and forwards Ctrl-C.

If standard output is a terminal, the command runs on a pseudoterminal; otherwise, it writes to two pipes. If standard
input is a terminal as well, typed keys are passed on; otherwise, the command inherits standard input. A supervisor
process starts the command, and ends it if this process dies.

The carriage returns that a pseudoterminal adds at the ends of lines are not part of the copy.
"""

import contextlib
import errno
import os
import select
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Protocol

from cli.runs.command.escalation import Escalation
from cli.runs.command.output_observer import IDLE_S, OutputObserver
from cli.runs.command.pseudoterminal import Pseudoterminal, is_in_foreground, raw_mode
from cli.runs.command.route import Route
from cli.runs.command.signal_handlers import Handler, handling
from cli.runs.command.standard_streams import new_pipe, open_standard_streams
from cli.runs.command.supervisor_reports import SUPERVISOR, CommandResult, lost_supervisor, merged_reports, result_in
from cli.runs.command.time_limit import TimeLimit

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


class OutputLog(Protocol):
    """Receives a copy of the command's output."""

    def write(self, data: bytes, stream: Hashable = 1, /) -> object:
        """Append output of a stream. If this raises OSError, the command goes on, and the log receives nothing more."""


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
        self._log_failed = False
        self._carriage_return = b""
        self._terminal: Pseudoterminal | None = None
        self._outputs: list[Route] = []
        self._keys: Route | None = None
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
                ours.enter_context(raw_mode(0))
            self._limit.start()
            reports = self._relay(status)
            self._close_control()
            result = result_in(reports) or lost_supervisor(reports, supervisor.wait())
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
        has_keys = os.isatty(0) and is_in_foreground(0)
        if os.isatty(0) and not has_keys:
            # Another program is in the foreground and receives the keyboard input.
            stdin = os.open(os.devnull, os.O_RDONLY)
            theirs.callback(os.close, stdin)
        if not os.isatty(1):
            (out, out_end), (errors, errors_end) = new_pipe(ours, theirs), new_pipe(ours, theirs)
            self._outputs = [Route(out, 1), Route(errors, 2)]
            return stdin, out_end, errors_end
        self._terminal = Pseudoterminal(ours, theirs)
        master, slave = self._terminal.master, self._terminal.slave
        self._outputs = [Route(master, 1)]
        if not has_keys:
            return stdin, slave, slave
        self._keys = Route(0, master, TYPED_BYTES)
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
                reports = merged_reports(received)
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
        self._write_log(self._carriage_return)
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
        self._write_log(data, stream)

    def _write_log(self, data: bytes, stream: int = 1) -> None:
        if not data or self._log_failed:
            return
        try:
            self._log.write(data, stream)
        except OSError as error:
            self._log_failed = True
            self._problems.append(f"the copy of the output is incomplete: {error.strerror}")

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
