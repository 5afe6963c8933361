"""Turns matching lines of a command's output into marks of its run."""

from pathlib import Path
from re import Pattern

from cli.errors import note
from cli.runs.command.output_observer import OutputObserver
from cli.runs.marks_file import append_mark, mark_text
from collector.redaction.redactor import Redactor

# The pattern is applied to at most this many bytes of a line.
MAX_LINE_BYTES = 4096


class OutputMarker(OutputObserver):
    """Marks the run in a directory at each matching line, with the text of the first group, or else the whole match.

    Secrets are replaced before the pattern is applied.
    """

    def __init__(self, pattern: Pattern[bytes], folder: Path, redactor: Redactor) -> None:
        self._pattern = pattern
        self._folder = folder
        self._redactor = redactor
        # The beginning of an incomplete line, by output stream.
        self._lines: dict[int, bytes] = {}

    def before_output(self, data: bytes, stream: int) -> None:
        """Mark the run at each matching line that `data` completes."""
        *lines, rest = (self._lines.get(stream, b"") + data).replace(b"\r", b"\n").split(b"\n")
        self._lines[stream] = rest[:MAX_LINE_BYTES]
        for line in lines:
            self._mark(line)

    def end(self) -> None:
        """Treat each stream's last line as complete, even if it does not end with a newline."""
        for line in self._lines.values():
            self._mark(line)
        self._lines.clear()

    def _mark(self, line: bytes) -> None:
        match = self._pattern.search(self._redactor.data(line[:MAX_LINE_BYTES]))
        if match is None:
            return
        first = match.group(1) if match.re.groups else None
        text = mark_text((match.group() if first is None else first).decode(errors="replace"))
        if text:
            try:
                append_mark(self._folder, text)
            except OSError as error:
                note(f"{error.filename or self._folder}: cannot write the mark: {error.strerror}")
