"""Bytes that come in pieces, as lines."""

from collections.abc import Iterator

# Compactions name every file they wrote, which may be some hundreds.
LONGEST_BYTES = 256 << 10


class LineSplitter:
    """Puts lines together. One that is longer than the bound is cut off there, and the rest of it skipped."""

    def __init__(self, longest_bytes: int = LONGEST_BYTES) -> None:
        self._longest = longest_bytes
        self._begun = b""
        self._skipping = False

    def begin(self, *, in_a_line: bool = False) -> None:
        """Forget what was begun; when it goes on `in_a_line`, that one is skipped."""
        self._begun = b""
        self._skipping = in_a_line

    def complete(self, chunk: bytes) -> Iterator[bytes]:
        r"""Yield the lines that `chunk` ends, without their ends (`\n` or `\r\n`)."""
        *ended, begun = chunk.split(b"\n")
        for part in ended:
            line, skipped = self._begun + part, self._skipping
            self.begin()
            if not skipped:
                yield self._cut(line)
        if not self._skipping:
            self._begun += begun
        if len(self._begun) > self._longest:
            cut = self._cut(self._begun)
            self.begin(in_a_line=True)
            yield cut

    def _cut(self, line: bytes) -> bytes:
        return line[: self._longest].removesuffix(b"\r")
