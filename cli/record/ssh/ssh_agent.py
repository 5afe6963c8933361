"""Agents that `record` starts on remote hosts through the system's ssh, and its connections to casstat there.

An ssh process runs `casstat spool` on the remote host (see `remote_spool`) and forwards a local UNIX socket to the
agent's socket. If the connection breaks, the agent keeps recording while this side reconnects.
"""

import contextlib
import json
import os
import secrets
import select
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cli.errors import CasstatError, note
from cli.parameters.parameter_types import SSH_PORT, SshAddress
from cli.record.ssh import remote_spool
from cli.run_folder import SPOOL_FOLDER
from collector.agents.addresses import NodeAddress, Tunnel
from collector.printable import one_line
from collector.recording.header import VERSION as JOURNAL_FORMAT
from collector.runs.run import Run, RunNode
from collector.runs.run_file import RunFileError, is_run, read_run, write_run

OPTIONS = {
    # Nobody can answer a prompt.
    "BatchMode": "yes",
    "ConnectTimeout": "10",
    # ssh ends a connection on which nothing has arrived for 15 s.
    "ServerAliveInterval": "5",
    "ServerAliveCountMax": "3",
    # A shared connection would go on forwarding the socket after the run.
    "ControlMaster": "no",
    "ControlPath": "none",
    # Another ssh process may already be using a forwarding that the user has configured for this host.
    "ExitOnForwardFailure": "no",
    "StreamLocalBindUnlink": "yes",
    "RemoteCommand": "none",
    # At lower levels, ssh does not print why a login failed.
    "LogLevel": "INFO",
}
CHUNK_BYTES = 1 << 14
# How much of ssh's output is kept.
MAX_KEPT_BYTES = 1 << 14
# How long ssh may take to end before it is killed.
EXIT_S = 2.0
# The exit statuses of ssh, of a shell that does not find a command, and of casstat for an unknown command.
SSH_FAILED, NOT_FOUND, UNKNOWN_COMMAND = 255, 127, 2


def ssh_command(address: SshAddress, words: Sequence[str], sockets: tuple[str, str] | None = None) -> list[str]:
    """Return ssh's command line; `words` are a command for the remote login shell.

    `sockets` are a local socket, and the remote one to which it is forwarded.
    """
    options = [word for name, value in OPTIONS.items() for word in ("-o", f"{name}={value}")]
    forwarding = [] if sockets is None else ["-L", ":".join(sockets)]
    return ["ssh", "-T", "-a", "-x", *options, *forwarding, *address.words(), shlex.join(words)]


class SshSession:
    """A running ssh process. The remote side sends messages, one JSON object per line.

    has_ended  whether the remote side will send nothing more.
    was_cut    whether the connection broke after the remote side had answered; known after `close`.

    ssh runs in a new session, so that Ctrl-C does not end it. If this process dies, the remote command's standard input
    ends.
    """

    def __init__(self, address: SshAddress, command: Sequence[str]) -> None:
        """Start ssh. Raises OSError."""
        self._address = address
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        assert self._process.stdin is not None  # noqa: S101 - pipes were requested
        assert self._process.stdout is not None  # noqa: S101
        assert self._process.stderr is not None  # noqa: S101
        self._stdin, self._stdout, self._stderr = self._process.stdin, self._process.stdout, self._process.stderr
        self._output = b""
        self._errors = b""
        self._has_answered = False
        self.has_ended = False
        self.was_cut = False

    def send(self, data: bytes) -> None:
        """Send data to the remote command; the data is lost if the connection has ended."""
        with contextlib.suppress(OSError):
            self._stdin.write(data)

    def messages(self, wake: int, timeout_s: float) -> Iterator[dict[str, Any]]:
        """Wait up to `timeout_s` for output of ssh or a byte from `wake`, and yield the messages that are now complete.

        Skips lines that are not messages: a shell's start-up files may print some.
        """
        output, errors = self._stdout.fileno(), self._stderr.fileno()
        ready = _readable((output, errors, wake), timeout_s)
        if wake in ready:
            os.read(wake, 1)
        if errors in ready:
            self._errors = (self._errors + os.read(errors, CHUNK_BYTES))[-MAX_KEPT_BYTES:]
        if output not in ready:
            return
        data = os.read(output, CHUNK_BYTES)
        self.has_ended = not data
        *lines, rest = (self._output + (data or b"\n")).split(b"\n")
        self._output = rest[-MAX_KEPT_BYTES:]
        for line in lines:
            with contextlib.suppress(ValueError, RecursionError):
                content = json.loads(line)
                if isinstance(content, dict):
                    self._has_answered = True
                    yield content
                    continue
            if not self._has_answered:
                self._errors = (self._errors + line + b"\n")[-MAX_KEPT_BYTES:]

    def last_line(self) -> str:
        """Return the last line printed by ssh, or by the remote side before its first message."""
        lines = [line.strip() for line in self._errors.decode(errors="replace").splitlines()]
        return one_line(next(filter(None, reversed(lines)), ""))

    def close(self) -> str:
        """End ssh unless it has already exited; return why it exited, which is meaningless if `close` ended it."""
        process = self._process
        with contextlib.suppress(OSError):
            self._stdin.close()
        try:
            process.wait(EXIT_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                # With a jump host, ssh runs another process.
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        while _readable((self._stderr.fileno(),), 0.0):
            data = os.read(self._stderr.fileno(), CHUNK_BYTES)
            if not data:
                break
            self._errors = (self._errors + data)[-MAX_KEPT_BYTES:]
        self._stdout.close()
        self._stderr.close()
        self.was_cut = self._has_answered and (process.returncode == SSH_FAILED or process.returncode < 0)
        return self._problem(process.returncode)

    def _problem(self, status: int) -> str:
        """Return the reason for an exit status of ssh."""
        text, test = self.last_line(), self._address.command_line("casstat --help")
        if self._has_answered:
            return text.removeprefix("casstat: ") or "the connection was closed"
        if status == NOT_FOUND:
            return f"casstat is not installed on the remote host, or not in its PATH (hint: make sure '{test}' works)"
        if status == UNKNOWN_COMMAND:
            hint = f"install version {version('casstat')} on the remote host"
            return f"casstat on the remote host does not support ssh:// (hint: {hint})"
        if "Host key verification failed" in text:
            return f"{text} (hint: run '{self._address.command_line()}' and verify the host key)"
        if "Permission denied" in text:
            return f"{text} (hint: set up a key so that ssh needs no prompt)"
        if status == SSH_FAILED:
            return text.removeprefix("ssh: ") or "ssh failed"
        return "casstat on the remote host does not answer" + (f": {text}" if text else "")


def _readable(descriptors: Sequence[int], timeout_s: float) -> set[int]:
    """Wait up to `timeout_s`; return the descriptors that can be read or are at their end."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(max(timeout_s, 0.0) * 1000)}


BEAT_S = 2.0
# How long to wait for the connection and for the agent to start.
START_S = 90.0
# The delay before reconnecting; it is doubled after each failure.
MIN_DELAY_S, MAX_DELAY_S = 0.5, 5.0
# How long to try to delete the spool.
DELETE_S = 60.0
# After this time, a note states what the program is waiting for.
SILENT_S = 3.0
# How long to wait for the first response through the forwarded socket.
PROBE_S = 10.0
SOCKET = "agent"
# The characters that have no special meaning in a path in ssh's options.
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./")
NO_VARIABLES: Mapping[str, str] = MappingProxyType({})
# The maximum length of the parent directory's path: Linux limits the path of a UNIX socket to 107 bytes.
MAX_PATH_CHARS = 60


class SshAgent:
    """An agent on a remote host that records to a spool, a temporary directory on that host.

    Disconnecting deletes the spool, unless the run's file says that the spool has not been fetched. The run's file
    names the spool until the spool has been deleted.
    """

    def __init__(
        self,
        address: SshAddress,
        run: Path,
        spool: str = "",
        source: str = "auto",
        variables: Mapping[str, str] = NO_VARIABLES,
    ) -> None:
        """Start the agent in the background for the run in the directory `run`.

        `spool` is an existing spool to use; `variables` are environment variables for the agent. Raises CasstatError.
        """
        if shutil.which("ssh") is None:
            raise CasstatError("ssh: command not found (hint: install OpenSSH's client)")
        if spool and not SPOOL_FOLDER.fullmatch(spool):
            raise CasstatError(f"'{one_line(spool)}' is not the name of a spool")
        self._address = address
        self._source = source
        self._variables = variables
        self._run = run
        self._must_exist = bool(spool)
        self.spool = spool or f"/tmp/casstat-{secrets.token_hex(16)}"  # noqa: S108 - nobody can guess the name
        self._folder = _temporary_folder()
        self._changed = threading.Condition()
        self._is_serving = False
        self._is_lost = False
        self._failure = ""
        self._delay_s = MIN_DELAY_S
        self._ending = threading.Event()
        self._ends_s = 0.0
        # Whether the spool may exist.
        self._is_begun = bool(spool)
        self._wants_deletion = False
        self.is_deleted = False
        """Whether the spool no longer exists."""
        # A byte in this pipe wakes the thread.
        self._wake_end, self._wake = os.pipe()
        self._thread = threading.Thread(target=self._follow, name="ssh", daemon=True)
        self._thread.start()

    def __enter__(self) -> "SshAgent":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def address(self) -> NodeAddress:
        """Wait until the agent serves its API, and return the API's address. Raises CasstatError."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_serving or self._failure, START_S):
                self._failure = f"casstat did not start on the remote host within {START_S:g} s"
        if self._failure:
            self.begin_stop()
            raise CasstatError(self._failure)
        tunnel = Tunnel(str(self._folder / SOCKET), self._address.url, self.spool)
        return NodeAddress("ssh", self._address.host, self._address.port or SSH_PORT, tunnel=tunnel)

    def begin_stop(self) -> None:
        """Begin to disconnect, and to delete the spool if it is not needed."""
        if not self._ending.is_set():
            self._wants_deletion = self._is_begun and not _is_needed(self._run, self.spool)
            self._ends_s = time.monotonic() + DELETE_S
            self._ending.set()
            os.write(self._wake, b"x")

    def stop(self) -> None:
        """Disconnect, and delete the spool if it is not needed; after a lost connection, this may take DELETE_S.

        Ctrl-C ends the wait: raises KeyboardInterrupt.
        """
        self.begin_stop()
        try:
            self._thread.join(SILENT_S)
            if self._thread.is_alive():
                note(f"{self._address.url}: waiting for a connection in order to delete {self.spool}")
                self._thread.join()
        finally:
            if not self._thread.is_alive():
                os.close(self._wake)
                os.close(self._wake_end)
            shutil.rmtree(self._folder, ignore_errors=True)
            if self.is_deleted:
                _forget(self._run, self.spool)
            elif self._wants_deletion and (self._is_serving or self._must_exist):
                hint = self._address.command_line(f"rm -r {self.spool}")
                note(f"{self._address.url}: cannot delete {self.spool} (hint: run '{hint}')")

    def _follow(self) -> None:
        """Stay connected until stopped, or until the agent has failed to start; reconnect with growing pauses."""
        while not self._is_over():
            problem, was_cut = self._session()
            with self._changed:
                if not self._is_serving and (self._failure or not was_cut):
                    self._failure = self._failure or problem
                    self._changed.notify_all()
                    break
            if self._is_over():
                break
            if self._is_serving and not self._is_lost:
                note(one_line(f"{self._address.url}: connection lost: {problem}"))
                self._is_lost = True
            if self._wants_deletion:
                time.sleep(self._delay_s)
            else:
                self._ending.wait(self._delay_s)
            self._delay_s = min(2 * self._delay_s, MAX_DELAY_S)

    def _is_over(self) -> bool:
        if not self._ending.is_set():
            return False
        return self.is_deleted or not self._wants_deletion or time.monotonic() >= self._ends_s

    def _session(self) -> tuple[str, bool]:
        """Stay connected until the connection ends or is no longer needed; return why, and whether it broke."""
        existing = ["--existing"] if self._must_exist or self._wants_deletion else []
        sockets = str(self._folder / SOCKET), f"{self.spool}/{remote_spool.SOCKET}"
        source = [] if self._source == "auto" else ["--source", self._source]
        command = ssh_command(self._address, ["casstat", "spool", *existing, *source, self.spool], sockets)
        try:
            session = SshSession(self._address, command)
        except OSError as error:
            return f"ssh: {error.strerror}", False
        problem = ""
        try:
            problem = self._exchange(session)
        finally:
            reason = session.close()
        return problem or reason, session.was_cut

    def _exchange(self, session: SshSession) -> str:
        """Exchange messages until the session ends or is no longer needed; return a problem, or "" if there is none."""
        is_compatible = asked_for_deletion = False
        while not session.has_ended and not self._is_over():
            for message in session.messages(self._wake_end, BEAT_S):
                if "protocol" in message:
                    problem = self._version_problem(message)
                    if problem:
                        return problem
                    is_compatible = self._is_begun = True
                    session.send(remote_spool.variables_line(self._variables))
                elif "deleted" in message:
                    self.is_deleted = True
                    if not self._ending.is_set():
                        return f"{self.spool} no longer exists on the remote host"
                elif "serving" in message:
                    self._take_agent(session)
            if is_compatible:
                session.send(remote_spool.HEARTBEAT)
                if self._wants_deletion and not asked_for_deletion:
                    session.send(remote_spool.DELETE)
                    asked_for_deletion = True
        return ""

    def _take_agent(self, session: SshSession) -> None:
        """Begin to use the agent, which now serves its API."""
        if not self._is_serving and not _responds(self._folder / SOCKET):
            for _ in session.messages(self._wake_end, 0.0):
                pass
            hint = "set 'AllowStreamLocalForwarding yes' in the remote host's sshd_config"
            self._failure = f"ssh cannot forward a socket: {session.last_line()} (hint: {hint})"
            self.begin_stop()
            return
        if self._is_lost:
            note(f"{self._address.url}: connected again")
        self._is_lost, self._delay_s = False, MIN_DELAY_S
        with self._changed:
            self._is_serving = True
            self._changed.notify_all()

    def _version_problem(self, message: dict[str, Any]) -> str:
        """Return why the remote casstat cannot be used, or ""; print a note if only its version differs."""
        remote, local = one_line(message.get("casstat")), version("casstat")
        journal_format = message.get("journal_format")
        is_readable = isinstance(journal_format, int) and journal_format <= JOURNAL_FORMAT
        if message["protocol"] != remote_spool.PROTOCOL or not is_readable:
            problem = f"casstat {remote} on the remote host does not work with casstat {local} on this host"
            return f"{problem} (hint: install the same version on both)"
        if remote != local and not self._is_serving:
            note(f"{self._address.url}: casstat {remote} on the remote host, casstat {local} on this host")
        return ""


def report_spools(run: Run) -> None:
    """Print which recordings of a run are still on remote hosts."""
    for node in run.recorded:
        if node.spool and _is_wanted(node):
            note(one_line(f"{node.address}: the recording is still in {node.spool} on the remote host"))


def _temporary_folder() -> Path:
    """Return a new directory for a socket, with a path that ssh takes literally."""
    parent = tempfile.gettempdir()
    is_plain = len(parent) <= MAX_PATH_CHARS and set(parent) <= PLAIN
    return Path(tempfile.mkdtemp(prefix="casstat-", dir=parent if is_plain else "/tmp"))  # noqa: S108


def _is_needed(run: Path, spool: str) -> bool:
    """Return whether a run's file says that a spool has not been fetched; True if the file cannot be read."""
    if not is_run(run):
        return False
    try:
        return any(node.spool == spool and _is_wanted(node) for node in read_run(run).recorded)
    except (OSError, RunFileError):
        return True


def _is_wanted(node: RunNode) -> bool:
    """Return whether a node's recording has not been fetched completely."""
    return bool(node.problem or not node.folder)


def _forget(folder: Path, spool: str) -> None:
    """Remove the name of a deleted spool from a run's file, if the file can be written."""
    if not is_run(folder):
        return
    with suppress(OSError, RunFileError):
        run = read_run(folder)
        nodes = tuple(replace(node, spool="") if node.spool == spool else node for node in run.nodes)
        hosts = tuple(replace(host, spool="") if host.spool == spool else host for host in run.client_hosts)
        write_run(folder, replace(run, nodes=nodes, client_hosts=hosts))


def _responds(path: Path) -> bool:
    """Return whether an agent responds through a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(PROBE_S)
        try:
            client.connect(str(path))
            client.sendall(b"GET /api/v1/time HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return bool(client.recv(1))
        except OSError:
            return False
