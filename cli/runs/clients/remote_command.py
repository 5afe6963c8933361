"""The part of `casstat record --client-host` on the client host: it runs the command and sends the command's files.

The command runs in the `work` directory of a spool (see `remote_spool`). This side sends messages, each a JSON object
on a line: what `hello` returns; `{"stream": NUMBER, "data": BASE64}` for output; and `{"exit_code": CODE, "problem":
TEXT}` when the command has ended. It receives lines: an empty line is a heartbeat, `start SECONDS` sets the time at
which the command starts, on this machine's clock, and `signal NUMBER` is a signal for the command. Without heartbeats,
the command ends.

A second session collects the files that the command left in `work`: `{"file": PATH}`, `{"data": BASE64}` for each part,
and `{"sha256": HEX}` after the last part; `{"collected": COUNT, "skipped": COUNT}` follows the last file.
"""

import base64
import fcntl
import hashlib
import json
import os
import select
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cli.errors import CasstatError
from cli.runs.command.standard_streams import new_pipe
from cli.runs.command.supervisor_reports import (
    SUPERVISOR,
    CommandResult,
    lost_supervisor,
    merged_reports,
    result_in,
)
from cli.runs.run_folder import FOLDER_VARIABLE, RUN_VARIABLE
from cli.runs.ssh.remote_spool import BEGUN_FILE

PROTOCOL = 1
"""The version of the command's arguments and of what it sends and receives."""
LEASE_S = 60.0
"""The command ends if there has been no heartbeat for this long."""
WORK_FOLDER = "work"
# The client keeps only the last 16 KiB of an incomplete line, and Base64 makes the data a third larger.
CHUNK_BYTES = 8 << 10
# How long to wait, after the command has ended, for output of processes that it left in the background.
DRAIN_S = 0.5
POLL_S = 0.5
MAX_FILES = 10_000


def hello() -> dict[str, object]:
    """Return what the client must know before the command is started."""
    return {"casstat": version("casstat"), "protocol": PROTOCOL}


def attend(spool: Path, run_name: str, words: Sequence[str], lease_s: float) -> None:
    """Run the command for the client at the other end of the standard streams. Raises CasstatError."""
    _send(hello())
    control = _Control(lease_s)
    work = spool / WORK_FOLDER
    try:
        work.mkdir(mode=0o700)
    except OSError as error:
        raise CasstatError(f"{work}: {error.strerror}") from None
    while control.start_s is None or time.time() < control.start_s:
        due_s = POLL_S if control.start_s is None else control.start_s - time.time()
        control.wait(max(0.0, min(due_s, POLL_S)))
        if control.is_lost():
            return
        if control.start_s is not None:
            (spool / BEGUN_FILE).touch()
    environ = {**os.environ, RUN_VARIABLE: run_name, FOLDER_VARIABLE: str(work)}
    result = _run(words, work, environ, control)
    _send({"exit_code": result.exit_code, "problem": result.problem})


class _Control:
    """What the client sends: the time to start, signals and heartbeats."""

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._last_s = time.monotonic()
        self._received = b""
        self.start_s: float | None = None
        self.signals: list[int] = []
        self.has_ended = False

    def is_lost(self) -> bool:
        """Return whether the client has disconnected, or has sent nothing for the duration of the lease."""
        return self.has_ended or time.monotonic() - self._last_s >= self._lease_s

    def wait(self, timeout_s: float) -> None:
        """Wait at most `timeout_s` for lines, and process them."""
        if select.select([0], [], [], timeout_s)[0]:
            self.read()

    def read(self) -> None:
        """Process the lines that have arrived."""
        data = os.read(0, select.PIPE_BUF)
        self.has_ended = not data
        self._last_s = time.monotonic()
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            name, _, value = line.partition(b" ")
            with suppress(ValueError):
                if name == b"start":
                    self.start_s = float(value)
                elif name == b"signal":
                    self.signals.append(int(value))


def _run(words: Sequence[str], work: Path, environ: Mapping[str, str], control: _Control) -> CommandResult:
    """Run the command and wait for it to end, or end it if the client is gone. Raises CasstatError."""
    with ExitStack() as ours, ExitStack() as theirs:
        status, status_end = new_pipe(ours, theirs)
        control_end, supervised = os.pipe()
        theirs.callback(os.close, control_end)
        # Closing `supervised`, the only write end of the control pipe, makes the supervisor end the command.
        closing = ours.enter_context(ExitStack())
        closing.callback(os.close, supervised)
        outputs = [new_pipe(ours, theirs) for _ in range(2)]
        try:
            supervisor = subprocess.Popen(
                [*SUPERVISOR, str(control_end), str(status_end), "-1", *words],
                cwd=work,
                stdin=subprocess.DEVNULL,
                stdout=outputs[0][1],
                stderr=outputs[1][1],
                env=environ,
                pass_fds=(control_end, status_end),
                start_new_session=True,
            )
        except OSError as error:
            raise CasstatError(f"cannot start the command: {error.strerror}") from None
        ours.callback(supervisor.wait)
        theirs.close()
        streams = {outputs[0][0]: 1, outputs[1][0]: 2}
        reports = _relay(streams, status, control, supervised, closing)
        closing.close()
        result = result_in(reports) or lost_supervisor(reports, supervisor.wait())
        _drain(streams)
        return result


def _relay(
    streams: dict[int, int], status: int, control: _Control, supervised: int, closing: ExitStack
) -> Mapping[str, Any]:
    """Send output and forward signals until the command or its supervisor has ended; return the supervisor's reports.

    `streams` maps descriptors to the numbers of the streams; those that have ended are removed.
    """
    received = b""
    while True:
        ready = _readable([*streams, status, *([] if control.has_ended else [0])], POLL_S)
        if 0 in ready:
            # Read before checking `is_lost`: if sending output blocked for a long time, heartbeats have queued up.
            control.read()
        for number in control.signals:
            with suppress(OSError):
                os.write(supervised, bytes([number]))
        control.signals.clear()
        if control.is_lost():
            closing.close()
        _send_output(streams, ready)
        if status in ready:
            report = os.read(status, 1 << 12)
            received += report
            reports = merged_reports(received)
            if not report or result_in(reports) is not None:
                return reports


def _drain(streams: dict[int, int]) -> None:
    """Send the rest of the output, but do not wait for processes that the command left in the background.

    Per stream, this is at most what its pipe can contain; the waits for it take at most DRAIN_S in total.
    """
    capacity = {descriptor: fcntl.fcntl(descriptor, fcntl.F_GETPIPE_SZ) for descriptor in streams}
    remaining_s = DRAIN_S
    while streams:
        began_s = time.monotonic()
        ready = _readable(list(streams), remaining_s)
        remaining_s = max(0.0, remaining_s - (time.monotonic() - began_s))
        if not ready:
            break
        for descriptor, size in _send_output(streams, ready).items():
            capacity[descriptor] -= size
            if capacity[descriptor] <= 0:
                streams.pop(descriptor, None)


def _send_output(streams: dict[int, int], ready: set[int]) -> Mapping[int, int]:
    """Send output that is ready, and remove streams that have ended; return the number of bytes sent by descriptor."""
    sizes = {}
    for descriptor in ready & streams.keys():
        data = os.read(descriptor, CHUNK_BYTES)
        sizes[descriptor] = len(data)
        if data:
            _send({"stream": streams[descriptor], "data": base64.b64encode(data).decode()})
        else:
            del streams[descriptor]
    return sizes


def _readable(descriptors: Sequence[int], timeout_s: float) -> set[int]:
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(timeout_s * 1000)}


def collect(spool: Path) -> None:
    """Send the files that the command left in its working directory. Raises CasstatError."""
    _send(hello())
    work = spool / WORK_FOLDER
    collected = skipped = 0
    try:
        for path in _files_in(work):
            if collected >= MAX_FILES or not _send_file(work, path):
                skipped += 1
            else:
                collected += 1
    except OSError as error:
        raise CasstatError(f"{error.filename or work}: {error.strerror}") from None
    _send({"collected": collected, "skipped": skipped})


def _files_in(folder: Path) -> Iterator[Path]:
    """Yield the regular files in a directory and its subdirectories; symbolic links are not followed."""
    for parent, _, names in os.walk(folder):
        for name in sorted(names):
            path = Path(parent) / name
            if stat.S_ISREG(path.lstat().st_mode):
                yield path


def _send_file(work: Path, path: Path) -> bool:
    """Send a regular file; return whether it can be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    _send({"file": str(path.relative_to(work))})
    checksum = hashlib.sha256()
    with os.fdopen(descriptor, "rb") as file:
        while data := file.read(CHUNK_BYTES):
            checksum.update(data)
            _send({"data": base64.b64encode(data).decode()})
    _send({"sha256": checksum.hexdigest()})
    return True


def _send(content: dict[str, object]) -> None:
    """Send a message. Raises CasstatError if the client is gone."""
    try:
        sys.stdout.write(json.dumps(content) + "\n")
        sys.stdout.flush()
    except OSError:
        raise CasstatError("the client is gone") from None
