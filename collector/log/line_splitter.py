"""Splits chunks of bytes into lines."""

from collections.abc import Iterator

# A compaction message names every file written, and there may be hundreds.
MAX_BYTES = 256 << 10


class LineSplitter:
    """Assembles lines from chunks. A line longer than `max_bytes` is truncated."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._partial = b""
        self._skipping = False

    def reset(self, *, skip_line: bool = False) -> None:
        """Discard the partial line; `skip_line` also skips the input up to the next line end."""
        self._partial = b""
        self._skipping = skip_line

    def complete(self, chunk: bytes) -> Iterator[bytes]:
        r"""Yield the lines that `chunk` completes, without their ends (`\n` or `\r\n`)."""
        *complete, partial = chunk.split(b"\n")
        for part in complete:
            line, is_skipped = self._partial + part, self._skipping
            self.reset()
            if not is_skipped:
                yield self._truncated(line)
        if not self._skipping:
            self._partial += partial
        if len(self._partial) > self._max_bytes:
            truncated = self._truncated(self._partial)
            self.reset(skip_line=True)
            yield truncated

    def _truncated(self, line: bytes) -> bytes:
        return line[: self._max_bytes].removesuffix(b"\r")
