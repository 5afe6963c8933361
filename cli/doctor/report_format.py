"""How the doctor says it: aligned lines for people, JSON for programs; never a secret."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from cli.doctor.finding import Finding, State
from collector.printable import printable

GREEN, YELLOW, RED, PLAIN = "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[0m"
COLOURS = {State.OK: GREEN, State.WARNING: YELLOW, State.PROBLEM: RED}
INDENT = " " * 4
HIDDEN = "***"
# What stands before the @ of a URL, and what follows a word for a secret.
_IN_URL = re.compile(r"(?<=//)[^/@\s'\"]+(?=@)")


def is_coloured(environ: Mapping[str, str], *, terminal: bool) -> bool:
    """Return whether to print in colour."""
    return terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def text_lines(findings: Sequence[Finding], *, colour: bool) -> Iterator[str]:
    """Yield the findings for people."""
    subjects = max((len(each.subject) for each in findings), default=0)
    states = max(len(state.value) for state in State)
    for each in findings:
        reasons = printable("; ".join(part for part in (each.what, each.why) if part))
        state = f"{each.state.value:{states}}"
        state = f"{COLOURS[each.state]}{state}{PLAIN}" if colour else state
        yield f"{state}  {each.subject:{subjects}}  {reasons}"
        for number, line in enumerate(map(printable, each.mend)):
            yield f"{INDENT}{line}" if number else f"{INDENT}mend: {line}"


def json_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield one object a finding; several lines of a mend are one text."""
    for each in findings:
        whole = {"subject": each.subject, "state": each.state.value, "what": each.what, "why": each.why}
        yield json.dumps({**whole, "mend": "\n".join(each.mend)})


def hidden(text: str, secrets: Iterable[str]) -> str:
    """Return the text without the secrets, and without those in URLs."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN) if secret else text
    return _IN_URL.sub(HIDDEN, text)
