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
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from cli.errors import CasstatError
from cli.runs.agents.private_agent import START_S
from cli.runs.ssh.spool_folder import (
    HEARTBEAT_FILE,
    JOURNAL_FOLDER,
    SOCKET,
    STOP_S,
    delete_spool,
    is_kept,
    open_spool,
)
from cli.runs.ssh.spool_keeper import POLL_S, keeper_problem, new_keeper
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
    is_new = open_spool(folder)
    try:
        beats.pass_on()
        if _start(folder, lease_s, source, variables, beats):
            _send({"serving": True})
            while beats.wait(POLL_S):
                if not is_kept(folder):
                    raise CasstatError(keeper_problem(folder))
    except CasstatError:
        if is_new and not is_kept(folder) and not any((folder / JOURNAL_FOLDER).glob(f"*{SUFFIX}")):
            delete_spool(folder)
        raise
    if beats.wants_deletion:
        delete_spool(folder)
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
        try:
            self._file.touch()
        except OSError as error:
            raise CasstatError(f"{error.filename or self._file}: {error.strerror}") from None


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
    while not (is_kept(folder) and _accepts(folder / SOCKET)):
        if keeper is not None and keeper.poll():
            raise CasstatError(keeper_problem(folder))
        if time.monotonic() >= ends_s:
            raise CasstatError("the agent did not start in time")
        if (keeper is None or keeper.poll() is not None) and not is_kept(folder):
            keeper = new_keeper(folder, lease_s, source, variables)
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
