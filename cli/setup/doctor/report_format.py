"""The doctor's output: aligned lines for people, JSON for programs, with secrets masked."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from cli.setup.doctor.finding import Finding, State
from collector.http.access import HIDDEN, masked_url
from collector.printable import printable

GREEN, YELLOW, RED, PLAIN = "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[0m"
COLOURS = {State.OK: GREEN, State.WARNING: YELLOW, State.PROBLEM: RED}
INDENT = " " * 4
_URL = re.compile(r"//\S+")


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
