"""The part of `casstat record` that runs an agent on a remote host.

A spool is a directory in /tmp with the journal of an agent, which serves its API on a UNIX socket in the spool. A
keeper process, detached from the SSH session, runs the agent while heartbeats arrive. The journal outlives the agent,
so `casstat fetch --recover` can fetch it later. The client chooses the spool's name; it can therefore repeat the
command after a broken connection, and knows the socket's path before the agent exists.

The protocol on the SSH session's standard streams: this side sends what `hello` returns, and does nothing until it
receives a line, a JSON object of environment variables for the agent. They contain credentials, which must not appear
in arguments. When the agent serves its API, this side sends `{"serving": true}`. Each later byte is a heartbeat, except
DELETE: it stops the agent, deletes the spool and is answered with `{"deleted": true}`. The answer is the same if the
client expects an existing spool, and there is none.
"""

import json
import os
import select
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from cli.errors import CasstatError
from cli.process_setup import casstat_command
from cli.record.private_agent import START_S, PrivateAgent, last_line, log_begin
from cli.run_folder import BEGUN_FILE, try_lock
from collector.agents.run_records import FILE as RUNS_FILE
from collector.file_access import file_errors
from collector.recording.header import VERSION as JOURNAL_FORMAT
from collector.recording.writer import SUFFIX

PROTOCOL = 2
"""The version of the command's arguments and of the protocol."""
HEARTBEAT, DELETE = b"\n", b"d"
JOLOKIA_USER, JOLOKIA_PASSWORD, TRUSTED_USER = VARIABLES = (
    "CASSTAT_JOLOKIA_USER",
    "CASSTAT_JOLOKIA_PASSWORD",
    "CASSTAT_TRUSTED_USER",
)
"""The environment variables that a client may set."""
LEASE_S = 60.0
"""The agent stops after this time without a heartbeat."""
# How often the state is checked while an agent starts.
STARTING_POLL_S = 0.1
MAX_VARIABLES_BYTES = 1 << 16
KEPT_POLL_S = 0.5
SOCKET = "socket"
JOURNAL_FOLDER, HEARTBEAT_FILE, LOCK_FILE, LOG_FILE = "journal", "heartbeat", "lock", "keeper.log"
# How often the state is checked while an agent stops.
ENDING_POLL_S = 0.1
STOP_S = 15.0
"""A keeper stops its agent within this time."""


def hello() -> dict[str, object]:
    """Return what the client must know before anything is created."""
    return {"casstat": version("casstat"), "protocol": PROTOCOL, "journal_format": JOURNAL_FORMAT}


def variables_line(variables: Mapping[str, str]) -> bytes:
    """Return the client's first line: the agent's environment variables as JSON."""
    return json.dumps(dict(variables)).encode() + b"\n"


def attend(folder: Path, lease_s: float, source: str, *, may_create: bool) -> None:
    """Have an agent record to `folder`, and pass on the client's heartbeats, until the client is gone.

    `source` is the agent's --source. Unless `may_create` is true, a missing spool is reported as deleted. Raises
    CasstatError.
    """
    _send(hello())
    beats = _Heartbeats(folder, lease_s)
    variables = beats.await_variables()
    if variables is None:
        return
    if not may_create and not folder.exists():
        _send({"deleted": True})
        return
    is_new = _open_spool(folder)
    try:
        beats.pass_on()
        if _start(folder, lease_s, source, variables, beats):
            _send({"serving": True})
            while beats.wait(KEPT_POLL_S):
                if not _is_kept(folder):
                    raise CasstatError(_keeper_problem(folder))
    except CasstatError:
        if is_new and not _is_kept(folder) and not any((folder / JOURNAL_FOLDER).glob(f"*{SUFFIX}")):
            _delete_spool(folder)
        raise
    if beats.wants_deletion:
        _delete_spool(folder)
        _send({"deleted": True})


class _Heartbeats:
    """The client's heartbeats on standard input."""

    def __init__(self, folder: Path, lease_s: float) -> None:
        self._file = folder / HEARTBEAT_FILE
        self._lease_s = lease_s
        self._last_s = time.monotonic()
        self.wants_deletion = False

    def await_variables(self) -> dict[str, str] | None:
        """Wait for the first line; return its variables, or None if it is malformed or does not arrive in time."""
        line = b""
        ends_s = self._last_s + self._lease_s
        while select.select([0], [], [], max(0.0, ends_s - time.monotonic()))[0]:
            received = os.read(0, 1)
            if received == b"\n":
                return _variables_in(line)
            line += received
            if not received or len(line) > MAX_VARIABLES_BYTES:
                return None
        return None

    def wait(self, timeout_s: float) -> bool:
        """Wait for heartbeats, and pass them on; return whether the client is still sending them.

        If the client's network fails, sshd does not notice that the client is gone, but the heartbeats stop.
        """
        if select.select([0], [], [], timeout_s)[0]:
            received = os.read(0, select.PIPE_BUF)
            self.wants_deletion = DELETE in received
            if not received or self.wants_deletion:
                return False
            self.pass_on()
        return time.monotonic() - self._last_s < self._lease_s

    def pass_on(self) -> None:
        """Record a heartbeat for the keeper. Raises CasstatError."""
        self._last_s = time.monotonic()
        with file_errors(self._file, CasstatError):
            self._file.touch()


def _variables_in(line: bytes) -> dict[str, str] | None:
    """Return the variables in the client's first line; None if it is malformed."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or any(not isinstance(value, str) or "\0" in value for value in content.values()):
        return None
    return {name: value for name, value in content.items() if name in VARIABLES}


def _start(folder: Path, lease_s: float, source: str, variables: Mapping[str, str], beats: _Heartbeats) -> bool:
    """Wait until the agent serves its API; start a keeper unless there is one.

    Returns whether the client still sends heartbeats. Raises CasstatError.
    """
    keeper: subprocess.Popen[bytes] | None = None
    # A previous keeper may still be stopping.
    ends_s = time.monotonic() + STOP_S + START_S
    while not (_is_kept(folder) and _accepts(folder / SOCKET)):
        if keeper is not None and keeper.poll():
            raise CasstatError(_keeper_problem(folder))
        if time.monotonic() >= ends_s:
            raise CasstatError("the agent did not start in time")
        if (keeper is None or keeper.poll() is not None) and not _is_kept(folder):
            keeper = _new_keeper(folder, lease_s, source, variables)
        if not beats.wait(STARTING_POLL_S):
            return False
    return True


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(START_S)
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True


def _send(content: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


def keep(folder: Path, lease_s: float, source: str) -> None:
    """Run the agent until no heartbeat arrives for `lease_s`, or the spool is to be deleted.

    If no run has begun by then, nobody will fetch the recording, so the spool is deleted. Raises CasstatError.
    """
    _require_spool(folder)
    with try_lock(folder / LOCK_FILE) as is_first, suppress(_SpoolEndedError):
        if not is_first:
            return
        options = () if source == "auto" else ("--source", source)
        with PrivateAgent(folder / JOURNAL_FOLDER, options, f"unix:{folder / SOCKET}") as agent:
            agent.wait_until_serving(lambda: _last_beat(folder))
            beat, changed_s = _last_beat(folder), time.monotonic()
            while time.monotonic() - changed_s < lease_s:
                time.sleep(KEPT_POLL_S)
                if agent.has_ended():
                    raise CasstatError("the agent exited unexpectedly")
                latest = _last_beat(folder)
                if latest != beat:
                    beat, changed_s = latest, time.monotonic()
        # A run begins on the agent, or with a command on this host.
        if not ((folder / BEGUN_FILE).exists() or (folder / JOURNAL_FOLDER / RUNS_FILE).exists()):
            shutil.rmtree(folder, ignore_errors=True)


def _new_keeper(folder: Path, lease_s: float, source: str, variables: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    words = casstat_command("spool", folder, "--keep", "--lease", str(lease_s), "--source", source)
    with file_errors(folder, CasstatError), (folder / LOG_FILE).open("wb") as log:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **variables},
            start_new_session=True,
        )


def _keeper_problem(folder: Path) -> str:
    """Return why the keeper has ended."""
    return last_line(log_begin(folder / LOG_FILE)) or "the agent ended without a message"


class _SpoolEndedError(Exception):
    """The spool is to be deleted."""


def _open_spool(folder: Path) -> bool:
    """Create a spool unless it exists; return whether it is new. Raises CasstatError."""
    with file_errors(folder, CasstatError):
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            _require_spool(folder)
            return False
    (folder / LOCK_FILE).touch(0o600)
    return True


def _require_spool(folder: Path) -> None:
    """Raise CasstatError unless `folder` is a spool of the current user."""
    with file_errors(folder, CasstatError):
        state = folder.lstat()
        is_marked = stat.S_ISREG((folder / LOCK_FILE).lstat().st_mode)
    is_private = state.st_uid == os.geteuid() and not state.st_mode & 0o077
    if not (stat.S_ISDIR(state.st_mode) and is_private and is_marked):
        raise CasstatError(f"{folder}: not a recording directory owned by the current user")


def _is_kept(folder: Path) -> bool:
    """Return whether a keeper is running. Raises CasstatError."""
    with try_lock(folder / LOCK_FILE) as is_free:
        return not is_free


def _last_beat(folder: Path) -> int:
    """Return a number that changes with each heartbeat. Raises _SpoolEndedError."""
    try:
        return (folder / HEARTBEAT_FILE).stat().st_mtime_ns
    except OSError:
        raise _SpoolEndedError from None


def _delete_spool(folder: Path) -> None:
    """Stop the agent and delete the spool. Raises CasstatError."""
    _require_spool(folder)
    (folder / HEARTBEAT_FILE).unlink(missing_ok=True)
    ends_s = time.monotonic() + STOP_S
    while _is_kept(folder):
        if time.monotonic() >= ends_s:
            raise CasstatError(f"{folder}: the agent did not stop within {STOP_S:g} s")
        time.sleep(ENDING_POLL_S)
    with file_errors(folder, CasstatError):
        shutil.rmtree(folder)
