"""Agents that `record` starts for nodes without one; each ends when the process that started it ends."""

import os
import re
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from cli.agent.signals import END_WITH_INPUT, FALLBACK_NODE
from cli.errors import CasstatError, note
from cli.process_setup import casstat_command
from cli.record.command.supervised_command import SUPERVISOR, merged_reports, result_in
from cli.record.command.supervisor import end
from collector.agents.addresses import NodeAddress, parse_address
from collector.printable import one_line

LOG_FILE = "agent.log"
# An agent contacts its node before it serves its API, and Jolokia or nodetool may take this long to answer.
START_S = 60.0
POLL_S = 0.02
_SERVING = re.compile(rb"^casstat: serving (\S+)$", re.MULTILINE)
MAX_LOG_BYTES, MAX_REPORT_BYTES = 1 << 16, 1 << 12


class PrivateAgent:
    """A casstat agent with its journal in `folder`; by default, it listens on a free port of the loopback interface."""

    def __init__(
        self, folder: Path, options: Sequence[str], listen: str = "127.0.0.1:0", fallback_node: str = ""
    ) -> None:
        """Start the agent with additional options; paths in them must be absolute. Raises CasstatError.

        `fallback_node` is the name of its node until Cassandra answers; by default, the agent chooses it.
        """
        folder = folder.absolute()
        self._log = folder / LOG_FILE
        command = casstat_command("agent", "--listen", listen, "--journal-dir", folder)
        # Settings for a permanent agent on this machine must not affect the private one.
        foreign = _AGENT_VARIABLES | (_NODE_VARIABLES if "--jolokia" in options else set())
        environ = {name: value for name, value in os.environ.items() if name not in foreign}
        self._status, status_end = os.pipe()
        control_end, self._control = os.pipe()
        # The agent ends when this pipe is closed, so it ends with its owner even if the supervisor has been killed.
        input_end, self._input = os.pipe()
        words = [str(control_end), str(status_end), "-1", *command, *options]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with self._log.open("wb") as log:
                self._supervisor = subprocess.Popen(
                    [*SUPERVISOR, *words],
                    stdin=input_end,
                    stdout=log,
                    stderr=log,
                    env={**environ, END_WITH_INPUT: "1", FALLBACK_NODE: fallback_node},
                    pass_fds=(control_end, status_end),
                    start_new_session=True,
                )
        except OSError as error:
            for descriptor in (self._control, self._status, self._input):
                os.close(descriptor)
            raise CasstatError(f"{error.filename or folder}: {error.strerror}") from None
        finally:
            for descriptor in (control_end, status_end, input_end):
                os.close(descriptor)

    def __enter__(self) -> "PrivateAgent":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def address(self) -> NodeAddress:
        """Wait until the agent serves its API, and return the API's address. Raises CasstatError."""
        return parse_address(self.wait_until_serving())

    def wait_until_serving(self, poll: Callable[[], object] = lambda: None) -> str:
        """Wait until the agent serves its API; return the address that it listens on.

        Calls `poll` repeatedly while it waits. Raises CasstatError, and any exception that `poll` raises.
        """
        ends_s = time.monotonic() + START_S
        while time.monotonic() < ends_s:
            ended = self._supervisor.poll() is not None
            output = log_begin(self._log)
            serving = _SERVING.search(output)
            if serving is not None:
                return serving.group(1).decode()
            if ended:
                raise CasstatError(f"cannot start an agent: {last_line(output) or 'it ended without a message'}")
            poll()
            time.sleep(POLL_S)
        raise CasstatError(f"the agent did not start within {START_S:g} s: {last_line(log_begin(self._log))}")

    def has_ended(self) -> bool:
        return self._supervisor.poll() is not None

    def stop(self) -> None:
        """Stop the agent; its journal is complete when this returns."""
        if self._control >= 0:
            # The supervisor stops the agent when this pipe is closed.
            os.close(self._control)
            self._control = -1
        self._supervisor.wait()
        if self._status < 0:
            return
        reports = merged_reports(os.read(self._status, MAX_REPORT_BYTES))
        for descriptor in (self._status, self._input):
            os.close(descriptor)
        self._status = -1
        if result_in(reports) is None:
            note("an agent's supervisor ended unexpectedly; the agent has been stopped without it")
            if "pid" in reports:
                end(int(reports["pid"]))


def log_begin(path: Path) -> bytes:
    """Return the first part of a log; b"" if it cannot be read."""
    try:
        with path.open("rb") as log:
            return log.read(MAX_LOG_BYTES)
    except OSError:
        return b""


def last_line(output: bytes) -> str:
    """Return the last line without its prefix; "" if there is none."""
    lines = output.decode(errors="replace").splitlines()
    return one_line(lines[-1].removeprefix("casstat: ").removeprefix("Error: ")) if lines else ""


_AGENT_VARIABLES = frozenset(
    f"CASSTAT_{name}" for name in ("LISTEN", "JOURNAL_DIR", "JOURNAL_LIMIT", "WEB_CONFIG_FILE", "TO", "CONFIG")
)
# These describe one node, which may not be the one whose URL is given with --jolokia.
_NODE_VARIABLES = frozenset(
    f"CASSTAT_{name}"
    for name in ("NODE", "LOG", "LOG_PATTERN", "JOLOKIA_TARGET", "JOLOKIA_TARGET_USER", "JOLOKIA_TARGET_PASSWORD_FILE")
)
