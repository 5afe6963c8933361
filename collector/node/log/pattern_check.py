"""Recognises a log whose lines do not match its pattern, which would otherwise have no events without a reason."""

import re
from collections.abc import Iterable
from pathlib import Path

from collector.growing_file import GrowingFile, NotRegularError
from collector.node.log.logback import LogPattern

TAIL_BYTES = 1 << 16
# The numbers of lines without a match after which the pattern is wrong: at the beginning of a file, and after a line
# that matched, because some libraries print lines in another form.
FIRST_LINES, LATER_LINES = 3, 100
# Lines that continue a message, as in a stack trace or a dump of threads.
_CONTINUATION = re.compile(
    r"\t|\s+(?:at |\.\.\. )|Caused by: |Suppressed: |\.\.\. |[\w.$]+(?:Exception|Error|Throwable)\b|\Z"
    r"|\"|\s+(?:java\.lang\.Thread\.State: |Locked ownable )"
)


def tail_lines(path: Path) -> list[str]:
    """Return the complete lines in the last 64 KiB of a file. Raises OSError and NotRegularError."""
    file = GrowingFile(path)
    try:
        begin = max(0, file.size() - TAIL_BYTES)
        file.seek(begin)
        text = file.read(TAIL_BYTES).decode(errors="replace")
    finally:
        file.close()
    # The last part is empty or an incomplete line, and the first one may be incomplete, too.
    return [line.removesuffix("\r") for line in text.split("\n")[1 if begin else 0 : -1]]


def unmatched(pattern: LogPattern, lines: Iterable[str]) -> int:
    """Return the number of lines that begin a message if none of them matches the pattern; 0 if one does."""
    first_lines = [line for line in lines if not _CONTINUATION.match(line)]
    return 0 if any(map(pattern.line, first_lines)) else len(first_lines)


class PatternCheck:
    """Counts the lines of a log that do not match its pattern."""

    def __init__(self, pattern: LogPattern) -> None:
        self._pattern = pattern
        self._unmatched = 0
        self._limit = FIRST_LINES
        self._reported = False

    def begin(self, path: Path) -> None:
        """Take the lines that a log already has into account."""
        try:
            lines = tail_lines(path)
        except (OSError, NotRegularError):
            return
        if count := unmatched(self._pattern, lines):
            self._unmatched, self._limit = count, 1
        elif lines:
            self._limit = LATER_LINES

    def next_file(self) -> None:
        """Begin with the next file of a log that was rotated."""
        self._unmatched, self._limit = 0, FIRST_LINES

    def add(self, text: str, *, matches: bool) -> None:
        """Add a line."""
        if matches:
            self._unmatched, self._limit, self._reported = 0, LATER_LINES, False
        elif not _CONTINUATION.match(text):
            self._unmatched += 1

    def take_problem(self) -> str:
        """Return that the pattern is wrong, as text; "" if it is not, or if that was reported before."""
        count = self._unmatched
        if self._reported or count < self._limit:
            return ""
        self._reported = True
        if self._limit == LATER_LINES:
            return f"none of the last {count} lines matches the log's pattern, so they have no events"
        lines = f"none of the {count} lines read so far matches" if count > 1 else "the line read so far does not match"
        return f"{lines} the log's pattern, so it has no events"
