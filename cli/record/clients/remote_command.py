"""The part of `casstat record --client-host` on the client host: it runs the command and sends the command's files.

The command runs in the `work` directory of a spool (see `remote_spool`). This side sends messages, each a JSON object
on a line: what `hello` returns; `{"stream": NUMBER, "data": BASE64}` for output; and `{"exit_code": CODE, "problem":
TEXT}` when the command has ended. It receives lines: an empty line is a heartbeat, `start SECONDS` sets the time at
which the command starts, on this machine's clock, and `signal NUMBER` is a signal for the command. Without heartbeats,
the command ends.

A second session collects the files that the command left in `work`: `{"file": PATH}`, `{"data": BASE64}` for each part,
and `{"sha256": HEX}` after the last part; `{"collected": COUNT, "skipped": COUNT}` follows the last file, with the
number of files and directories that cannot be sent. If the command is still running, `{"waiting": true}` is sent until
it has ended, or at last `{"problem": TEXT}`.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cli.errors import CasstatError
from cli.process_setup import new_pipe
from cli.record.command.supervised_command import SUPERVISOR, CommandResult, lost_supervisor, merged_reports, result_in
from cli.run_folder import BEGUN_FILE, FOLDER_VARIABLE, RUN_VARIABLE, WORK_FOLDER, try_lock
from collector.file_access import file_errors

PROTOCOL = 1
"""The version of the command's arguments and of what it sends and receives."""
LEASE_S = 60.0
"""The command ends if there has been no heartbeat for this long."""
LOCK_FILE = "command.lock"
COMMAND_END_S = LEASE_S + 30.0
"""A command without a client ends within this time."""
WAIT_S = 1.0
# The client keeps only the last 16 KiB of an incomplete line, and Base64 makes the data a third larger.
CHUNK_BYTES = 8 << 10
# How long to wait, after the command has ended, for output of processes that it left in the background.
DRAIN_S = 0.5
MAX_FILES = 10_000
MAX_PATH_BYTES = 1000
"""The maximum length of a file's path in the working directory; in JSON, it becomes up to six times as long."""
STDIN, STDOUT = 0, 1
POLL_S = 0.5
# Once this much is waiting for the client, no more output of the command is read.
MAX_PENDING_BYTES = 64 << 10
START_DELAY_S = 1.0
"""How long the start of the command is delayed once all hosts are ready, so that they all know the time in advance."""


class ClientChannel:
    """Sends messages without blocking, and receives control lines.

    start_s  the time at which the command starts, on this machine's monotonic clock; None until it is known.
    signals  the signals for the command that have been received but not yet processed.
    """

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._last_s = time.monotonic()
        self._received = b""
        self._pending = bytearray()
        self._is_broken = False
        self.start_s: float | None = None
        self.signals: list[int] = []
        os.set_blocking(STDOUT, False)

    @property
    def is_full(self) -> bool:
        return len(self._pending) >= MAX_PENDING_BYTES

    def is_lost(self) -> bool:
        """Return whether the connection has ended, or there has been no heartbeat for the duration of the lease."""
        return self._is_broken or time.monotonic() - self._last_s >= self._lease_s

    def send(self, message: Mapping[str, Any]) -> None:
        """Queue a message for the next calls of `wait` to send; discard it if the connection has ended."""
        if not self._is_broken:
            self._pending += json.dumps(message).encode() + b"\n"

    def flush(self) -> None:
        """Wait until all messages have been sent, or the client is lost."""
        while self._pending and not self.is_lost():
            self.wait((), POLL_S)

    def wait(self, descriptors: Sequence[int], timeout_s: float) -> set[int]:
        """Wait until there is something to do; return which of the descriptors can be read."""
        poll = select.poll()
        for descriptor in descriptors:
            poll.register(descriptor, select.POLLIN)
        if not self._is_broken:
            poll.register(STDIN, select.POLLIN)
        if self._pending:
            poll.register(STDOUT, select.POLLOUT)
        ready = {descriptor for descriptor, _ in poll.poll(timeout_s * 1000)}
        if STDIN in ready:
            self._read()
        if STDOUT in ready:
            self._write()
        return ready.intersection(descriptors)

    def _read(self) -> None:
        data = os.read(STDIN, select.PIPE_BUF)
        if not data:
            self._break()
        self._last_s = time.monotonic()
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            name, _, value = line.partition(b" ")
            with suppress(ValueError):
                if name == b"start":
                    # If this machine's clock has been set since it was measured, the command must not wait for hours.
                    delay_s = min(float(value) - time.time(), 2 * START_DELAY_S)
                    self.start_s = time.monotonic() + delay_s
                elif name == b"signal":
                    self.signals.append(int(value))

    def _write(self) -> None:
        try:
            del self._pending[: os.write(STDOUT, self._pending)]
        except BlockingIOError:
            pass
        except OSError:
            self._break()

    def _break(self) -> None:
        self._is_broken = True
        self._pending.clear()


def hello() -> dict[str, object]:
    """Return what the client must know before the command is started."""
    return {"casstat": version("casstat"), "protocol": PROTOCOL}


def attend(spool: Path, run_name: str, words: Sequence[str], lease_s: float) -> None:
    """Run the command for the client at the other end of the standard streams. Raises CasstatError."""
    channel = ClientChannel(lease_s)
    channel.send(hello())
    work, lock = spool / WORK_FOLDER, spool / LOCK_FILE
    try:
        lock.touch(0o600)
        work.mkdir(mode=0o700)
    except OSError as error:
        channel.flush()
        raise CasstatError(f"{error.filename or spool}: {error.strerror}") from None
    with try_lock(lock):
        _attend(channel, spool, run_name, words)


def _attend(channel: ClientChannel, spool: Path, run_name: str, words: Sequence[str]) -> None:
    """Wait for the time to start, and run the command. Raises CasstatError."""
    work = spool / WORK_FOLDER
    while channel.start_s is None or time.monotonic() < channel.start_s:
        due_s = POLL_S if channel.start_s is None else channel.start_s - time.monotonic()
        channel.wait((), max(0.0, min(due_s, POLL_S)))
        if channel.is_lost():
            return
        if channel.start_s is not None:
            (spool / BEGUN_FILE).touch()
    environ = {**os.environ, RUN_VARIABLE: run_name, FOLDER_VARIABLE: str(work)}
    result = _run(words, work, environ, channel)
    channel.send({"exit_code": result.exit_code, "problem": result.problem})
    channel.flush()


def _run(words: Sequence[str], work: Path, environ: Mapping[str, str], channel: ClientChannel) -> CommandResult:
    """Run the command and wait for it to end, or end it if the client is gone. Raises CasstatError."""
    with ExitStack() as ours, ExitStack() as theirs:
        status, status_end = new_pipe(ours, theirs)
        control_end, supervised = os.pipe()
        theirs.callback(os.close, control_end)
        # Closing `supervised`, the only write end of the control pipe, makes the supervisor end the command.
        closing = ExitStack()
        closing.callback(os.close, supervised)
        ours.callback(closing.close)
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
        # Callbacks run in reverse order: the pipe must be closed before the wait.
        ours.callback(closing.close)
        theirs.close()
        streams = {outputs[0][0]: 1, outputs[1][0]: 2}
        reports = _relay(streams, status, channel, supervised, closing)
        closing.close()
        result = result_in(reports) or lost_supervisor(reports, supervisor.wait())
        _drain(streams, channel)
        return result


def _relay(
    streams: dict[int, int], status: int, channel: ClientChannel, supervised: int, closing: ExitStack
) -> Mapping[str, Any]:
    """Send output and forward signals until the command or its supervisor has ended; return the supervisor's reports.

    `streams` maps descriptors to the numbers of the streams; those that have ended are removed.
    """
    received = b""
    while True:
        # While much output is waiting for the client, no more is read.
        ready = channel.wait([status, *(() if channel.is_full else streams)], POLL_S)
        if channel.is_lost():
            closing.close()
        else:
            for number in channel.signals:
                with suppress(OSError):
                    os.write(supervised, bytes([number]))
        channel.signals.clear()
        _send_output(streams, ready, channel)
        if status in ready:
            report = os.read(status, 1 << 12)
            received += report
            reports = merged_reports(received)
            if not report or result_in(reports) is not None:
                return reports


def _drain(streams: dict[int, int], channel: ClientChannel) -> None:
    """Send the rest of the output, but do not wait for processes that the command left in the background.

    For each stream, this sends at most as much as its pipe can hold; waiting takes at most DRAIN_S in total.
    """
    capacity = {descriptor: fcntl.fcntl(descriptor, fcntl.F_GETPIPE_SZ) for descriptor in streams}
    remaining_s = DRAIN_S
    while streams and not channel.is_lost():
        if channel.is_full:
            channel.wait((), POLL_S)
            continue
        began_s = time.monotonic()
        ready = channel.wait(list(streams), remaining_s)
        remaining_s -= time.monotonic() - began_s
        if not ready and remaining_s <= 0:
            break
        remaining_s = max(0.0, remaining_s)
        for descriptor, size in _send_output(streams, ready, channel).items():
            capacity[descriptor] -= size
            if capacity[descriptor] <= 0:
                streams.pop(descriptor, None)


def _send_output(streams: dict[int, int], ready: set[int], channel: ClientChannel) -> Mapping[int, int]:
    """Send output that is ready, and remove streams that have ended; return the number of bytes read by descriptor."""
    sizes = {}
    for descriptor in ready & streams.keys():
        data = os.read(descriptor, CHUNK_BYTES)
        sizes[descriptor] = len(data)
        if data:
            channel.send({"stream": streams[descriptor], "data": base64.b64encode(data).decode()})
        else:
            del streams[descriptor]
    return sizes


def _has_ended(spool: Path) -> bool:
    file = spool / LOCK_FILE
    if not file.exists():
        return True
    with try_lock(file) as is_free:
        return is_free


def collect(spool: Path) -> None:
    """Send the files that the command left in its working directory. Raises CasstatError.

    If the command is still running, because the connection broke without being noticed, waits until it has ended.
    """
    _send(hello())
    ends_s = time.monotonic() + COMMAND_END_S
    while not _has_ended(spool):
        _send({"waiting": True})
        if time.monotonic() >= ends_s:
            _send({"problem": "the command is still running"})
            return
        time.sleep(WAIT_S)
    work = spool / WORK_FOLDER
    collected = skipped = 0
    errors: list[OSError] = []
    with file_errors(work, CasstatError):
        for path in _files_in(work, errors.append):
            if collected >= MAX_FILES or not _send_file(work, path):
                skipped += 1
            else:
                collected += 1
    # Missing paths are not counted: a background process deleted them, or the command never started.
    skipped += sum(not isinstance(error, FileNotFoundError) for error in errors)
    _send({"collected": collected, "skipped": skipped})


def _files_in(folder: Path, on_error: Callable[[OSError], None]) -> Iterator[Path]:
    """Yield the regular files in a directory and its subdirectories; symbolic links are not followed.

    Calls `on_error` for each path that cannot be examined.
    """
    for parent, _, names in os.walk(folder, onerror=on_error):
        for name in sorted(names):
            path = Path(parent) / name
            try:
                is_file = stat.S_ISREG(path.lstat().st_mode)
            except OSError as error:
                on_error(error)
                continue
            if is_file:
                yield path


def _send_file(work: Path, path: Path) -> bool:
    """Send a regular file unless its path is too long or it cannot be read; return whether it was sent."""
    name = str(path.relative_to(work))
    if len(os.fsencode(name)) > MAX_PATH_BYTES:
        return False
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    _send({"file": name})
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
