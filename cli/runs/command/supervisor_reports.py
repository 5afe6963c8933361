"""The supervisor of a command: how to start it, and what its reports mean."""

import json
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cli.runs.command import supervisor as supervisor_program
from collector.runs.run_clock import monotonic

SUPERVISOR = (sys.executable, "-IS", str(supervisor_program.__file__))
"""The command line that starts the supervisor.

It ignores PYTHONPATH and runs the supervisor as a file: with -m, Python would prefer a `cli` directory in the working
directory.
"""
# The exit code if the supervisor fails; `casstat record` also uses it for its other failures.
FAILED = 125


@dataclass(frozen=True)
class CommandResult:
    """How the command ended.

    exit_code          as a shell reports it: 128 plus the number of a signal, 127 if the command was not found, or 126
                       if it is not executable; FAILED if its supervisor failed; 0 if it ended when it was interrupted
                       after its duration.
    problem            why the command could not be run, or its output could not be passed through or kept; "" if all
                       went well.
    left               whether processes of the command are still running in the background.
    ended_by_duration  whether the command was interrupted because its duration was over (see `time_limit`).
    is_interrupted     whether this program received a signal for the command, such as that of Ctrl-C.
    ended_at_s         when this program learnt that the command had ended, on the clock that counts from boot; the last
                       of its output may be passed on later.
    """

    exit_code: int
    problem: str = ""
    left: bool = False
    ended_by_duration: bool = False
    is_interrupted: bool = field(default=False, compare=False)
    ended_at_s: float = field(default_factory=monotonic, compare=False)


def merged_reports(received: bytes) -> dict[str, Any]:
    """Return the contents of all complete reports of the supervisor."""
    complete, _, _ = received.rpartition(b"\n")
    return {name: value for line in complete.splitlines() for name, value in json.loads(line).items()}


def result_in(reports: Mapping[str, Any]) -> CommandResult | None:
    """Return the result in the supervisor's reports, or None if there is none."""
    if "failed" in reports:
        return CommandResult(int(reports["code"]), str(reports["failed"]))
    if "ended" in reports:
        code = int(reports["ended"])
        return CommandResult(code if code >= 0 else 128 - code, left=bool(reports["left"]))
    return None


def lost_supervisor(reports: Mapping[str, Any], status: int) -> CommandResult:
    """Kill the command whose supervisor ended with `status`, as returned by Popen.wait; return the result."""
    how = f"exit status {status}" if status >= 0 else f"signal {-status}"
    problem = f"the command's supervisor ended unexpectedly ({how})"
    if "pid" in reports:
        supervisor_program.send(int(reports["pid"]), signal.SIGKILL)
        problem += "; the command has been killed"
    return CommandResult(FAILED, problem)
