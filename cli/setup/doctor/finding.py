"""The doctor's findings (state of a source, impact on columns, fixes), and their output as text and JSON."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from collector.http.access import HIDDEN, masked_url
from collector.printable import printable

GREEN, YELLOW, RED, PLAIN = "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[0m"
INDENT = " " * 4
_URL = re.compile(r"//\S+")


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
            finding, state=State.WARNING, impact=f"{finding.impact}; {substitute}" if finding.impact else substitute
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


COLOURS = {State.OK: GREEN, State.WARNING: YELLOW, State.PROBLEM: RED}


def is_coloured(environ: Mapping[str, str], *, terminal: bool) -> bool:
    return terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def text_lines(findings: Sequence[Finding], *, colour: bool) -> Iterator[str]:
    """Yield the findings as aligned lines."""
    subject_width = max((len(finding.subject) for finding in findings), default=0)
    state_width = max(len(state.value) for state in State)
    for finding in findings:
        text = printable("; ".join(part for part in (finding.summary, finding.impact) if part))
        state = f"{finding.state.value:{state_width}}"
        state = f"{COLOURS[finding.state]}{state}{PLAIN}" if colour else state
        yield f"{state}  {finding.subject:{subject_width}}  {text}"
        for index, line in enumerate(map(printable, finding.fixes)):
            yield f"{INDENT}{line}" if index else f"{INDENT}fix: {line}"


def json_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield one JSON object per finding; its fixes are joined into one multi-line string.

    The keys are part of the output format, which is older than the current field names.
    """
    for finding in findings:
        row = {
            "subject": finding.subject,
            "state": finding.state.value,
            "what": finding.summary,
            "why": finding.impact,
            "mend": "\n".join(finding.fixes),
        }
        yield json.dumps(row)


def hidden(text: str, secrets: Iterable[str]) -> str:
    """Return `text` with the secrets and all credentials in URLs masked."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN) if secret else text
    return _URL.sub(lambda match: masked_url(match[0]), text)
