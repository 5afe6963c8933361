"""One connection of the system's ssh to casstat on a remote host."""

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

from cli.parameters.ssh_address import SshAddress
from collector.printable import one_line

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
