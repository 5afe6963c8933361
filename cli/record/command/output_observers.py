"""What becomes of the output of a run's command: a copy without secrets, marks at matching lines, and a status line."""

import os
import re
import shutil
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack
from pathlib import Path
from re import Pattern
from typing import BinaryIO, NoReturn, Protocol

from cli.errors import note
from cli.record.command.supervised_command import CommandResult, TimeLimit
from cli.run_folder import LOG_FILE
from cli.runs.agent_clients import AgentClients
from cli.runs.marks_file import append_mark, mark_text
from collector.agents.addresses import NodeAddress
from collector.agents.fetching import FetchRange
from collector.live.live_cluster import Plan
from collector.printable import elapsed_text
from collector.redaction.redactor import RedactedStream, Redactor
from collector.runs.run import ClientHost
from exporters.live.frame import Frame, History, LiveFrames, Wanted
from exporters.live.live_columns import other_operations, value
from exporters.rows.operation_columns import TOTAL_RATE

# How often an observer is called while there is no output.
IDLE_S = 0.25
# The pattern is applied to at most this many bytes of a line.
MAX_LINE_BYTES = 4096
ERRORS = ("timeouts_per_s", "unavailables_per_s")
COLUMNS = frozenset({"reads_per_s", "read_p99_ms", "writes_per_s", "write_p99_ms", TOTAL_RATE, *ERRORS})
# Minimum time between redraws: while the line is visible, and after output has erased it.
REDRAW_S, AFTER_OUTPUT_S = 0.5, 0.1
ERASE = "\r\x1b[K"
# A full-screen program switches to the alternate screen and back.
_SCREEN = re.compile(rb"\x1b\[\?(?:1049|1047|47)([hl])")
# The length of the longest such sequence, which may be split between two reads.
_CARRY_BYTES = 8


class OutputLog(Protocol):
    """Receives a copy of the command's output."""

    def write(self, data: bytes, stream: Hashable = 1, /) -> object:
        """Append output of a stream, which may be empty. Raises no OSError: the command goes on without its log."""


class OutputObserver:
    """Follows the output of a command; all methods are called in the runner's thread. By default, they do nothing."""

    def before_output(self, data: bytes, stream: int) -> None:
        """Receive output that is about to be passed through; `stream` is the descriptor to which it is written."""

    def after_output(self) -> None:
        """Handle output that was passed through; called at least every IDLE_S unless its reader is slow."""

    def end(self) -> None:
        """Handle the end of the output."""


class OutputObservers(OutputObserver):
    """Several observers of the same output."""

    def __init__(self, observers: Sequence[OutputObserver]) -> None:
        self._observers = observers

    def before_output(self, data: bytes, stream: int) -> None:
        for observer in self._observers:
            observer.before_output(data, stream)

    def after_output(self) -> None:
        for observer in self._observers:
            observer.after_output()

    def end(self) -> None:
        for observer in self._observers:
            observer.end()


class ClientHosts(Protocol):
    """The client hosts of a run; they are already being sampled when `begin` is called."""

    def begin(self, now_s: float) -> float:
        """Schedule the command to start now or soon; `now_s` and the start time, which is returned, are the run's."""

    def run(self, log: OutputLog, observer: OutputObserver, limit: TimeLimit) -> CommandResult:
        """Run the command until it has ended on all hosts; `limit` ends it after a duration."""

    def entries(self) -> tuple[ClientHost, ...]:
        """Return the hosts' current entries for the run's file."""

    def stop(self) -> None:
        """Stop sampling on this machine."""

    def fetch(self, wanted: FetchRange, progress: Callable[[int], None]) -> tuple[ClientHost, ...]:
        """Fetch what other machines have recorded; return the hosts. Raises CasstatError and KeyboardInterrupt."""


def run_command(
    hosts: ClientHosts,
    folder: Path,
    mark_regex: Pattern[bytes] | None,
    plan: Plan | None,
    duration_s: float | None,
    redactor: Redactor,
) -> CommandResult:
    """Run the command of the run in `folder` on its hosts, and end it after `duration_s`, unless that is None.

    Its log and its marks are without the secrets that `redactor` replaces. On a terminal, show a status line unless
    `plan` is None.
    """
    with ExitStack() as stack:
        observers: list[OutputObserver] = []
        if mark_regex is not None:
            observers.append(OutputMarker(mark_regex, folder, redactor))
        if plan is not None and os.isatty(1) and os.isatty(2):
            frames = LiveFrames(plan, Wanted(COLUMNS))
            frames.start()
            stack.callback(frames.stop)
            status = StatusLine(frames.history, 2)
            stack.callback(status.erase)
            observers.append(status)
        log = stack.enter_context(CommandLog(folder / LOG_FILE, redactor))
        return hosts.run(log, OutputObservers(observers), TimeLimit(duration_s))


def live_plan(agents: Sequence[NodeAddress], clients: AgentClients) -> Plan:
    """Return the plan for showing a run's agents while its command runs."""

    def connect(_: str) -> NoReturn:
        raise AssertionError("private agents replace Jolokia agents")

    return Plan(tuple(agents), (), 1.0, clients.access_to, clients.tls, connect)


class CommandLog:
    """The file with the command's output. If it cannot be written, the command continues.

    Only complete lines are written, because the parts of a secret may arrive one after the other.
    """

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self._path = path
        self._redactor = redactor
        self._streams: dict[Hashable, RedactedStream] = {}
        self._file: BinaryIO | None = None
        self._error = ""

    def __enter__(self) -> "CommandLog":
        try:
            self._file = self._path.open("wb")
        except OSError as error:
            self._error = str(error.strerror)
        return self

    def __exit__(self, *_: object) -> None:
        for stream in self._streams.values():
            self._append(stream.end())
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self._error = self._error or str(error.strerror)
        if self._error:
            note(f"{self._path}: the command's output is incomplete: {self._error}")

    def write(self, data: bytes, stream: Hashable = 1) -> None:
        """Append the lines that are complete at once, so that the file's time is that of the last output.

        Lines of different streams are not mixed. After the first error, nothing is written.
        """
        self._append(self._streams.setdefault(stream, RedactedStream(self._redactor)).add(data))

    def _append(self, data: bytes) -> None:
        if self._file is None or self._error or not data:
            return
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            self._error = str(error.strerror)


class OutputMarker(OutputObserver):
    """Marks the run in a directory at each matching line, with the text of the first group, or else the whole match.

    Secrets are replaced before the pattern is applied.
    """

    def __init__(self, pattern: Pattern[bytes], folder: Path, redactor: Redactor) -> None:
        self._pattern = pattern
        self._folder = folder
        self._redactor = redactor
        # The beginning of an incomplete line, by output stream.
        self._lines: dict[int, bytes] = {}

    def before_output(self, data: bytes, stream: int) -> None:
        """Mark the run at each matching line that `data` completes."""
        *lines, rest = (self._lines.get(stream, b"") + data).replace(b"\r", b"\n").split(b"\n")
        self._lines[stream] = rest[:MAX_LINE_BYTES]
        for line in lines:
            self._mark(line)

    def end(self) -> None:
        """Treat each stream's last line as complete, even if it does not end with a newline."""
        for line in self._lines.values():
            self._mark(line)
        self._lines.clear()

    def _mark(self, line: bytes) -> None:
        match = self._pattern.search(self._redactor.data(line[:MAX_LINE_BYTES]))
        if match is None:
            return
        first = match.group(1) if match.re.groups else None
        text = mark_text((match.group() if first is None else first).decode(errors="replace"))
        if text:
            try:
                append_mark(self._folder, text)
            except OSError as error:
                note(f"{error.filename or self._folder}: cannot write the mark: {error.strerror}")


class StatusLine(OutputObserver):
    """Draws the line on a terminal whenever the cursor is at the beginning of a line.

    It is not drawn while a full-screen program runs, or after output that does not end with a newline.
    """

    def __init__(self, history: History, descriptor: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._history = history
        self._descriptor = descriptor
        self._clock = clock
        self._began_s = clock()
        self._drawn_s = -REDRAW_S
        self._is_drawn = self._is_full_screen = False
        self._is_line_start = True
        self._carry = b""

    def before_output(self, data: bytes, _stream: int) -> None:
        """Erase the line, and note whether the output ends a line and whether a full-screen program is running."""
        self.erase()
        switches = _SCREEN.findall(self._carry + data)
        if switches:
            self._is_full_screen = switches[-1] == b"h"
        self._carry = data[-_CARRY_BYTES:]
        self._is_line_start = data.endswith((b"\n", b"\r"))

    def after_output(self) -> None:
        """Draw the line, unless it has just been drawn."""
        if self._is_full_screen or not self._is_line_start:
            return
        if self._clock() - self._drawn_s < (REDRAW_S if self._is_drawn else AFTER_OUTPUT_S):
            return
        self._drawn_s = self._clock()
        frames = self._history.frames
        text = status_text(frames[-1] if frames else None, self._clock() - self._began_s)
        width = shutil.get_terminal_size().columns - 1
        self._write(f"{ERASE}\x1b[2m{text[:width]}\x1b[m\r")
        self._is_drawn = True

    def erase(self) -> None:
        """Erase the line if it is shown."""
        if self._is_drawn:
            self._write(ERASE)
            self._is_drawn = False

    def _write(self, text: str) -> None:
        try:
            os.write(self._descriptor, text.encode())
        except OSError:
            # The terminal has been closed; the run continues.
            self._is_full_screen = True


def status_text(frame: Frame | None, elapsed_s: float) -> str:
    """Return the status as text; `frame` is the latest interval, or None before the first one."""
    time_text = elapsed_text(elapsed_s)
    if frame is None:
        return f"{time_text}  waiting for the first interval"

    def number(name: str, digits: int = 0) -> str:
        cell = value(frame.cluster, name)
        return "-" if cell is None else f"{cell:,.{digits}f}"

    errors = [cell for name in ERRORS if (cell := value(frame.cluster, name)) is not None]
    all_operations = [f"all operations {number(TOTAL_RATE)}/s"] if other_operations(frame.cluster) else []
    return "  ".join(
        (
            time_text,
            *all_operations,
            f"reads {number('reads_per_s')}/s p99 {number('read_p99_ms', 2)} ms",
            f"writes {number('writes_per_s')}/s p99 {number('write_p99_ms', 2)} ms",
            f"errors {f'{sum(errors):,.0f}' if errors else '-'}/s",
            f"{frame.counted} of {len(frame.nodes)} nodes",
        )
    )
