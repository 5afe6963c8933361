"""What the doctor says: what is so with one source, what it means, and how to put it right."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum


class State(Enum):
    """How it is: columns come (ok), come less well than they could (warning), or are missing (problem)."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """One line of what the doctor says.

    subject  the source that it is about, such as jolokia.
    what     what is so.
    why      what that means for the columns; "" where it goes without saying.
    mend     the commands to type, or the lines to write and where, that put it right; from the second on each begins
             with "then: " or "or: ". Empty where nothing is to be done.
    """

    subject: str
    state: State
    what: str
    why: str = ""
    mend: tuple[str, ...] = ()


def ok(subject: str, what: str, why: str = "") -> Finding:
    """Return that all is well."""
    return Finding(subject, State.OK, what, why)


def warning(subject: str, what: str, why: str = "", *mend: str) -> Finding:
    """Return what could be better."""
    return Finding(subject, State.WARNING, what, why, mend)


def problem(subject: str, what: str, why: str = "", *mend: str) -> Finding:
    """Return what keeps columns from being filled."""
    return Finding(subject, State.PROBLEM, what, why, mend)


def lessened(findings: Iterable[Finding], why: str) -> list[Finding]:
    """Return the findings with problems as warnings: `why` something else does instead."""
    return [
        replace(each, state=State.WARNING, why=f"{each.why}; {why}" if each.why else why)
        if each.state is State.PROBLEM
        else each
        for each in findings
    ]


def failed(findings: Iterable[Finding]) -> bool:
    """Return whether there is a problem among the findings."""
    return any(each.state is State.PROBLEM for each in findings)


def alternatives(lines: Iterable[str]) -> tuple[str, ...]:
    """Return several ways to mend the same."""
    return tuple(f"or: {line}" if number else line for number, line in enumerate(lines))
