"""What reading a recording may take, whoever wrote it."""

from collections.abc import Iterable, Sequence

from collector.printable import one_line

MAX_SERIES = 50_000
"""Of one node; a node with a thousand tables has some ten thousand."""
MAX_MEMORY_BYTES = 1 << 30


class TooManySeriesError(Exception):
    """A recording has more series than may be read; the message says which and how many, in one line."""


class SeriesLimit:
    """Counts the different series of a node's recording."""

    def __init__(self, most: int, node: str) -> None:
        """Take how many there may be, and what to call the recording in the message."""
        self._most = most
        self._node = node
        self._seen: set[tuple[str, ...]] = set()

    def take(self, series: Iterable[Sequence[str]]) -> None:
        """Take the series of a line, as they are written there. Raises TooManySeriesError."""
        self._seen.update(map(tuple, series))
        if len(self._seen) > self._most:
            raise TooManySeriesError(f"{one_line(self._node)}: more than {self._most} series")
