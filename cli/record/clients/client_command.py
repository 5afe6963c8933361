"""The command of a run on one client host, started through the system's ssh (see `remote_command`)."""

import base64
import os
import threading
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

from cli.errors import CasstatError
from cli.parameters.ssh_address import SshAddress
from cli.record.clients import remote_command
from cli.record.command.supervised_command import FAILED, CommandResult
from cli.record.ssh.ssh_session import SshSession, ssh_command
from collector.printable import one_line

BEAT_S = 2.0
# How long to wait for the connection and for the client host to be ready.
READY_S = 60.0

OutputReceiver = Callable[[int, bytes], bool]
"""Takes the number of an output stream, and data from it; returns False if it could not take the data in time."""


class ClientCommand:
    """Connects to a client host, and runs the command there in the working directory of a spool.

    All methods can be called from any thread; `receive` is called from a thread of this object.
    """

    def __init__(
        self, address: SshAddress, spool: str, run_name: str, words: Sequence[str], receive: OutputReceiver
    ) -> None:
        self._address = address
        self._words = ["casstat", "execute", "--run", run_name, spool, "--", *words]
        self._receive = receive
        self._changed = threading.Condition()
        self._is_ready = False
        self._lines: list[bytes] = []
        self._result: CommandResult | None = None
        # A byte in this pipe wakes the thread.
        self._wake_end, self._wake = os.pipe()
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="client command", daemon=True)
        self._thread.start()

    def wait_until_ready(self) -> None:
        """Wait until the other host is ready for `start`. Raises CasstatError."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_ready or self._result is not None, READY_S):
                raise CasstatError(f"{self._address.url}: not ready within {READY_S:g} s")
            if self._result is not None:
                raise CasstatError(self._result.problem)

    def start(self, at_s: float) -> None:
        """Start the command when the other host's clock shows `at_s`."""
        self._send(f"start {at_s:.6f}\n")

    def signal(self, number: int) -> None:
        self._send(f"signal {int(number)}\n")

    @property
    def result(self) -> CommandResult | None:
        """How the command ended; None if it has not ended."""
        with self._changed:
            return self._result

    def close(self) -> None:
        """Disconnect; this ends the command if it is still running."""
        if not self._is_closed.is_set():
            self._is_closed.set()
            self._send("")
            self._thread.join()
            os.close(self._wake)
            os.close(self._wake_end)

    def _send(self, line: str) -> None:
        with self._changed:
            self._lines.append(line.encode())
        os.write(self._wake, b"x")

    def _follow(self) -> None:
        try:
            session = SshSession(self._address, ssh_command(self._address, self._words))
        except OSError as error:
            self._end(f"ssh: {error.strerror}")
            return
        problem = ""
        try:
            problem = self._exchange(session)
        finally:
            reason = session.close()
            self._end(problem or reason)

    def _exchange(self, session: SshSession) -> str:
        """Exchange messages until the command has ended or the connection is lost; return a problem, or ""."""
        while not (session.has_ended or self._is_closed.is_set()):
            for message in session.messages(self._wake_end, BEAT_S):
                if "stream" in message:
                    self._take_output(message, session)
                elif problem := self._take(message):
                    return problem
            if self.result is not None:
                break
            with self._changed:
                lines, self._lines = self._lines, []
            session.send(b"".join(lines) + b"\n")
        return ""

    def _take_output(self, message: dict[str, Any], session: SshSession) -> None:
        """Pass output on; while its reader is not ready, send heartbeats so that the command keeps running."""
        try:
            data = base64.b64decode(message["data"])
        except (KeyError, TypeError, ValueError):
            return
        while not self._receive(2 if message["stream"] == 2 else 1, data) and not self._is_closed.is_set():
            session.send(b"\n")

    def _take(self, message: dict[str, Any]) -> str:
        """Process a message; return a problem, or ""."""
        if "protocol" in message:
            if message["protocol"] != remote_command.PROTOCOL:
                remote = one_line(message.get("casstat"))
                return f"casstat {remote} on the remote host does not work with casstat {version('casstat')}"
            with self._changed:
                self._is_ready = True
                self._changed.notify_all()
        elif "exit_code" in message:
            code, problem = message["exit_code"], one_line(message.get("problem") or "")
            if isinstance(code, int):
                with self._changed:
                    self._result = CommandResult(code, f"{self._address.url}: {problem}" if problem else "")
        return ""

    def _end(self, problem: str) -> None:
        """Set a result that states why the connection failed, unless the command has ended."""
        with self._changed:
            if self._result is None:
                failure = "connection lost, so the command is terminated" if self._is_ready else "cannot connect"
                reason = f": {problem}" if problem else ""
                self._result = CommandResult(FAILED, one_line(f"{self._address.url}: {failure}{reason}"))
            self._changed.notify_all()
