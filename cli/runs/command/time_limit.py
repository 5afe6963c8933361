"""Ends a command after a duration: with SIGINT, and if it does not end, with SIGTERM and at last with SIGKILL."""

import time
from collections.abc import Callable
from dataclasses import replace

from cli.runs.command.escalation import ESCALATION
from cli.runs.command.supervisor_reports import FAILED, CommandResult

GRACE_S = 10.0
"""The time between two of these signals."""


class TimeLimit:
    """Decides which signal a command gets at which time; without a duration, it gets none."""

    def __init__(self, duration_s: float | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self._duration_s = duration_s
        self._now = now
        self._begin_s: float | None = None
        self._sent = 0

    @property
    def has_passed(self) -> bool:
        """Whether the command has been interrupted because the duration was over."""
        return self._sent > 0

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
        if not self.has_passed or has_failed:
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
