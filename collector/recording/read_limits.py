"""Limits on the resources that reading a recording may use."""

from collections.abc import Iterable, Sequence

from collector.printable import one_line

MAX_SERIES = 50_000
"""The default limit on one node's series; a node with a thousand tables has about ten thousand series."""
MAX_MEMORY_BYTES = 1 << 30


class TooManySeriesError(Exception):
    """A recording has more series than the limit; the one-line message names the node and the limit."""


class SeriesLimit:
    """Counts the distinct series in a node's recording and enforces a limit on them."""

    def __init__(self, limit: int, node: str) -> None:
        """Allow `limit` series; the error message contains `node`, the name of a node or directory."""
        self._limit = limit
        self._node = node
        self._seen: set[tuple[str, ...]] = set()

    def take(self, series: Iterable[Sequence[str]]) -> None:
        """Count a record's series. Raises TooManySeriesError if the limit is exceeded."""
        self._seen.update(map(tuple, series))
        if len(self._seen) > self._limit:
            raise TooManySeriesError(f"{one_line(self._node)}: more than {self._limit} series")
