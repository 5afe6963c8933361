"""The prefixes with which log viewers begin each line of a program's output.

docker compose writes `name-1  | `, and other composers `[name] | ` or `name-1 |`; kubectl writes
`[pod/NAME/CONTAINER] ` with `--prefix`. Both write the time with `--timestamps`, after the other prefix. journalctl
writes `Nov 29 15:05:32 host name[123]: `.
"""

import re
from dataclasses import dataclass

_COLOUR = r"(?:\x1b\[[0-9;]*m)*"
_CONTAINER = rf"{_COLOUR}(?P<container>\[?[\w.@/-]{{1,200}}\]?)\s*{_COLOUR}\|{_COLOUR} ?{_COLOUR}"
_POD = r"(?P<container>\[pod/[^\]\s]{1,500}\])(?: |$)"
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)(?: |$)"
_JOURNAL = (
    r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{6})?|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{6})?[+-]\d\d:?\d\d)"
    r" \S{1,255} (?P<container>[^\s:\[]{1,200}(?:\[\d+\])?): ?"
)


@dataclass(frozen=True)
class LogPrefix:
    """The prefix of a log's lines: its pattern, the command that writes it, and an example."""

    pattern: re.Pattern[str]
    writer: str
    example: str

    def split(self, line: str) -> tuple[str, str] | None:
        """Return the container that a line is from ("" if the prefix does not state it) and the line without prefix.

        Returns None if the line has no such prefix.
        """
        match = self.pattern.match(line)
        return (match.groupdict().get("container", ""), line[match.end() :]) if match else None

    def texts(self, text: str) -> dict[str, str]:
        """Return the text of each container without the prefixes."""
        texts: dict[str, str] = {}
        for container, line in filter(None, map(self.split, text.splitlines(keepends=True))):
            texts[container] = texts.get(container, "") + line
        return texts


# The first pattern that fits is used, so patterns that leave less of a prefix come first.
_PATTERNS = (
    (re.compile(_CONTAINER + _TIME), "docker compose logs --timestamps"),
    (re.compile(_CONTAINER), "docker compose logs"),
    (re.compile(_POD + _TIME), "kubectl logs --prefix --timestamps"),
    (re.compile(_POD), "kubectl logs --prefix"),
    (re.compile(_JOURNAL), "journalctl"),
    (re.compile(_TIME), "kubectl logs --timestamps"),
)


def log_prefix(text: str) -> LogPrefix | None:
    """Return the prefix with which most lines of a text begin; None if they have none."""
    # The last line may be incomplete.
    lines = [line for line in text.splitlines()[:-1] or [text] if line.strip()]
    for pattern, writer in _PATTERNS:
        matches = list(filter(None, map(pattern.match, lines)))
        if len(matches) * 2 > len(lines):
            return LogPrefix(pattern, writer, matches[0][0].strip())
    return None
