"""A command with a supervisor: how to start it, what its reports mean, and which signals end the command."""

import json
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cli.record.command import supervisor as supervisor_program
from collector.runs.run_clock import monotonic

SUPERVISOR = (sys.executable, "-IS", str(supervisor_program.__file__))
"""The command line that starts the supervisor.

It ignores PYTHONPATH and runs the supervisor as a file: with -m, Python would prefer a `cli` directory in the working
directory.
"""
# The exit code if the supervisor fails; `casstat record` also uses it for its other failures.
FAILED = 125
ESCALATION = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
GRACE_S = 10.0
"""The time between two of these signals."""


@dataclass(frozen=True)
class CommandResult:
    """How the command ended.

    exit_code          as a shell reports it: 128 plus the number of a signal, 127 if the command was not found, or 126
                       if it is not executable; FAILED if its supervisor failed; 0 if it ended when it was interrupted
                       after its duration.
    problem            why the command could not be run, or its output could not be passed through or kept; "" if all
                       went well.
    left               whether processes of the command are still running in the background.
    ended_by_duration  whether the command was interrupted because its duration was over (see `TimeLimit`).
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


class Escalation:
    """Counts presses of Ctrl-C."""

    def __init__(self) -> None:
        self._presses = 0
        self._pressed_s = float("-inf")

    def next_signal(self, within_s: float) -> int:
        """Return the signal for a press: the next one if the previous press was at most `within_s` ago, else SIGINT."""
        now_s = time.monotonic()
        self._presses = self._presses + 1 if now_s - self._pressed_s < within_s else 1
        self._pressed_s = now_s
        return ESCALATION[min(self._presses, len(ESCALATION)) - 1]


class TimeLimit:
    """Decides which signal a command gets at which time; without a duration, it gets none."""

    def __init__(self, duration_s: float | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self._duration_s = duration_s
        self._now = now
        self._begin_s: float | None = None
        self._sent = 0

    def start(self, delay_s: float = 0.0) -> None:
        """Begin the duration now, or in `delay_s` seconds."""
        self._begin_s = self._now() + delay_s

    def wait_s(self, most_s: float) -> float:
        """Return the time until the next signal is due, but at most `most_s`."""
        due_s = self._due_s()
        return most_s if due_s is None else min(most_s, max(0.0, due_s - self._now()))

    def due_signal(self) -> int | None:
        """Return the signal to send now; None if none is due. Each signal is returned once."""
        due_s = self._due_s()
        if due_s is None or self._now() < due_s:
            return None
        self._sent += 1
        return ESCALATION[self._sent - 1]

    def judged(self, result: CommandResult) -> CommandResult:
        """Return the result of a command that the limit may have ended: success if it ended after SIGINT or SIGTERM."""
        has_failed = result.exit_code == FAILED and result.problem
        if not self._sent or has_failed:
            return result
        if self._sent < len(ESCALATION):
            return replace(result, exit_code=0, ended_by_duration=True)
        grace_s = GRACE_S * (len(ESCALATION) - 1)
        problem = f"the command did not end within {grace_s:g} s after its duration, so it has been killed"
        problem = "; ".join(filter(None, [problem, result.problem]))
        return replace(result, problem=problem, ended_by_duration=True)

    def _due_s(self) -> float | None:
        if self._duration_s is None or self._begin_s is None or self._sent == len(ESCALATION):
            return None
        return self._begin_s + self._duration_s + self._sent * GRACE_S
