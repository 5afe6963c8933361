"""The prefixes with which log viewers begin each line of a program's output.

docker compose writes `name-1  | `, and other composers `[name] | ` or `name-1 |`; kubectl writes
`[pod/NAME/CONTAINER] ` with `--prefix`. Both write the time with `--timestamps`, after the other prefix. journalctl
writes `Nov 29 15:05:32 host name[123]: `.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from collector.load_results.client_format import HEAD_BYTES

MAX_CONTAINERS = 200

_COLOUR = r"(?:\x1b\[[0-9;]*m)*"
_CONTAINER = rf"{_COLOUR}(?P<container>\[?[\w.@/-]{{1,200}}\]?)\s*{_COLOUR}\|{_COLOUR}(?: {_COLOUR})?"
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

    def texts(self, lines: Iterable[str]) -> dict[str, str]:
        """Return the beginning of each container's text without the prefixes, at least HEAD_BYTES if it is that long.

        A container may begin to print long after others, such as those of Cassandra.
        """
        texts: dict[str, list[str]] = {}
        lengths: Counter[str] = Counter()
        for container, text in filter(None, map(self.split, lines)):
            if lengths[container] < HEAD_BYTES and (container in texts or len(texts) < MAX_CONTAINERS):
                texts.setdefault(container, []).append(text)
                lengths[container] += len(text)
        return {container: "".join(parts) for container, parts in texts.items()}


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
