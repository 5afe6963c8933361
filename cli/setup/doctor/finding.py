"""The doctor's findings: each gives the state of a source, the impact on the columns, and the fixes."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum


class State(Enum):
    """State of a source: its columns are complete (ok), limited in some way (warning), or empty (problem)."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """The result of one of the doctor's checks.

    subject  the source, such as jolokia.
    summary  the observed fact.
    impact   the effect of that fact on the columns; "" if that is obvious.
    fixes    commands to run, or instructions such as "add LINE to FILE"; every fix after the first begins with "then: "
             (the next step) or "or: " (an alternative). Empty if nothing has to be done or no fix is known.
    """

    subject: str
    state: State
    summary: str
    impact: str = ""
    fixes: tuple[str, ...] = ()


def ok(subject: str, summary: str, impact: str = "") -> Finding:
    """Return a finding that needs no fix."""
    return Finding(subject, State.OK, summary, impact)


def warning(subject: str, summary: str, impact: str = "", *fixes: str) -> Finding:
    return Finding(subject, State.WARNING, summary, impact, fixes)


def problem(subject: str, summary: str, impact: str = "", *fixes: str) -> Finding:
    return Finding(subject, State.PROBLEM, summary, impact, fixes)


def problems_as_warnings(findings: Iterable[Finding], substitute: str) -> list[Finding]:
    """Return the findings with problems turned into warnings; `substitute` describes the source used instead."""
    return [
        replace(
            finding,
            state=State.WARNING,
            impact=f"{finding.impact}; {substitute}" if finding.impact else substitute,
        )
        if finding.state is State.PROBLEM
        else finding
        for finding in findings
    ]


def has_problem(findings: Iterable[Finding]) -> bool:
    return any(finding.state is State.PROBLEM for finding in findings)


def alternatives(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the lines, with "or: " before each but the first."""
    return tuple(f"or: {line}" if index else line for index, line in enumerate(lines))
