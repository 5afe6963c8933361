"""Splits chunks of bytes into lines."""

from collections.abc import Iterator

# The limit is large because a compaction message names every file written, and there may be hundreds of files.
MAX_BYTES = 256 << 10


class LineSplitter:
    """Splits chunks into lines. Lines longer than `max_bytes` are truncated."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._partial = b""
        self._skipping = False

    def reset(self, *, skip_line: bool = False) -> None:
        """Discard the partial line; if `skip_line`, also skip the input up to the next line end."""
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
