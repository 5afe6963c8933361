"""Reads a growing result line by line."""

from collections.abc import Callable

from collector.clients.client_result import Operation
from collector.log.line_splitter import LineSplitter
from collector.printable import one_line


class GrowingLines:
    """A growing result (see `GrowingResult`) whose lines are read by `add_line`, which raises ValueError."""

    def __init__(
        self, add_line: Callable[[str], None], take: Callable[[], tuple[Operation, ...]], max_line_bytes: int
    ) -> None:
        self.problem = ""
        self._add_line = add_line
        self._take = take
        self._lines = LineSplitter(max_line_bytes)

    def add(self, data: bytes) -> int:
        malformed = 0
        for line in self._lines.complete(data):
            if not line.strip():
                continue
            try:
                self._add_line(line.decode(errors="replace").strip())
            except (ValueError, OverflowError) as error:
                self.problem = self.problem or one_line(error)
                malformed += 1
        return malformed

    def take(self) -> tuple[Operation, ...]:
        return self._take()
