"""One connection of the system's ssh to `casstat spool` on another machine."""

import contextlib
import json
import os
import select
import shlex
import signal
import subprocess
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any

from cli.runs.ssh.ssh_address import SshAddress
from collector.printable import one_line

OPTIONS = {
    # There is nobody to answer a prompt.
    "BatchMode": "yes",
    "ConnectTimeout": "10",
    # ssh ends a connection on which nothing has arrived for 15 s.
    "ServerAliveInterval": "5",
    "ServerAliveCountMax": "3",
    # A shared connection would go on forwarding the socket after the run.
    "ControlMaster": "no",
    "ControlPath": "none",
    # Some of the user's own forwardings for this host may already be in use by another ssh.
    "ExitOnForwardFailure": "no",
    "StreamLocalBindUnlink": "yes",
    "RemoteCommand": "none",
    # At lower levels, ssh does not print why a login failed.
    "LogLevel": "INFO",
}
CHUNK_BYTES = 1 << 14
# How much of ssh's output is kept.
MAX_KEPT_BYTES = 1 << 14
# How long ssh may take to end without a signal.
EXIT_S = 2.0
# Exit statuses: of ssh, of a shell that does not find the command, and of casstat for a command that it does not know.
SSH_FAILED, NOT_FOUND, UNKNOWN_COMMAND = 255, 127, 2


def ssh_command(address: SshAddress, sockets: tuple[str, str], words: Sequence[str]) -> list[str]:
    """Return ssh's command line; `sockets` are the local socket, and the remote one to which it is forwarded.

    The words are a command for the login shell there.
    """
    options = [word for name, value in OPTIONS.items() for word in ("-o", f"{name}={value}")]
    return ["ssh", "-T", "-a", "-x", *options, "-L", ":".join(sockets), *address.words(), shlex.join(words)]


class SshSession:
    """A running ssh. The other side sends messages, a JSON object per line.

    has_ended  the other side will send nothing more.
    was_cut    the connection has ended although the other side had answered; known after `close`.

    ssh has a session of its own, so that Ctrl-C does not end it. If this process dies, ssh's standard input ends.
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
        self._output = b""
        self._errors = b""
        self._has_answered = False
        self.has_ended = False
        self.was_cut = False

    def send(self, data: bytes) -> None:
        """Send data to the command there; it is lost if the connection has ended."""
        assert self._process.stdin is not None  # noqa: S101 - a pipe was requested
        with contextlib.suppress(OSError):
            self._process.stdin.write(data)

    def messages(self, wake: int, timeout_s: float) -> Iterator[dict[str, Any]]:
        """Wait until something arrives, or a byte can be read from `wake`; yield the messages that are complete.

        Other lines are skipped: a shell's start-up files may print some.
        """
        assert self._process.stdout is not None  # noqa: S101 - pipes were requested
        assert self._process.stderr is not None  # noqa: S101
        output, errors = self._process.stdout.fileno(), self._process.stderr.fileno()
        ready = _readable((output, errors, wake), timeout_s)
        if wake in ready:
            os.read(wake, 1)
        if errors in ready:
            self._errors = (self._errors + os.read(errors, CHUNK_BYTES))[-MAX_KEPT_BYTES:]
        if output not in ready:
            return
        data = os.read(output, CHUNK_BYTES)
        self.has_ended = not data
        *lines, self._output = (self._output + (data or b"\n"))[-MAX_KEPT_BYTES:].split(b"\n")
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
        """Return the last line that ssh, or the other side before its first message, has printed."""
        lines = [line.strip() for line in self._errors.decode(errors="replace").splitlines()]
        return one_line(next(filter(None, reversed(lines)), ""))

    def close(self) -> str:
        """End ssh; return why it has ended, if this side did not request it."""
        process = self._process
        assert process.stdin is not None  # noqa: S101 - pipes were requested
        assert process.stdout is not None  # noqa: S101
        assert process.stderr is not None  # noqa: S101
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(EXIT_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                # For a jump host, ssh runs another process.
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        while _readable((process.stderr.fileno(),), 0.0):
            data = os.read(process.stderr.fileno(), CHUNK_BYTES)
            if not data:
                break
            self._errors = (self._errors + data)[-MAX_KEPT_BYTES:]
        process.stdout.close()
        process.stderr.close()
        self.was_cut = self._has_answered and (process.returncode == SSH_FAILED or process.returncode < 0)
        return self._problem(process.returncode)

    def _problem(self, status: int) -> str:
        """Return the reason for an exit status of ssh."""
        text, test = self.last_line(), self._address.command_line("casstat --help")
        if self._has_answered:
            return text.removeprefix("casstat: ") or "the connection was closed"
        if status == NOT_FOUND:
            return f"casstat is not installed there, or not in the PATH of ssh (hint: make sure that '{test}' works)"
        if status == UNKNOWN_COMMAND:
            return f"the casstat there does not support ssh:// (hint: install version {version('casstat')} there)"
        if "Host key verification failed" in text:
            return f"{text} (hint: run '{self._address.command_line()}' and compare the host's key)"
        if "Permission denied" in text:
            return f"{text} (hint: set up a key so that ssh needs no prompt)"
        if status == SSH_FAILED:
            return text.removeprefix("ssh: ") or "ssh failed"
        return f"casstat does not answer there: {text}" if text else "casstat does not answer there"


def _readable(descriptors: Sequence[int], timeout_s: float) -> set[int]:
    """Wait up to `timeout_s`; return the descriptors that can be read or are at their end."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(max(timeout_s, 0.0) * 1000)}
