"""Prefixes each line of output with the name of its host."""

from collections.abc import Iterator, Sequence

# Longer lines are split.
MAX_LINE_BYTES = 1 << 16


class PrefixedLines:
    """Divides the output of several hosts into lines; `labels` are the hosts' names."""

    def __init__(self, labels: Sequence[str]) -> None:
        self._prefixes = [f"{label}: ".encode() for label in labels]
        # The beginning of an incomplete line, by host and stream.
        self._incomplete: dict[tuple[int, int], bytes] = {}

    def add(self, host: int, stream: int, data: bytes) -> bytes:
        """Return the lines that `data` completes, without prefixes."""
        complete, line_feed, rest = (self._incomplete.get((host, stream), b"") + data).rpartition(b"\n")
        text = complete + line_feed
        if len(rest) > MAX_LINE_BYTES:
            text += rest + b"\n"
            rest = b""
        self._incomplete[host, stream] = rest
        return text

    def rest(self) -> Iterator[tuple[int, int, bytes]]:
        """For each incomplete last line, yield its host, its stream, and the line with a line feed."""
        for (host, stream), line in self._incomplete.items():
            if line:
                yield host, stream, line + b"\n"

    def prefixed(self, host: int, text: bytes) -> bytes:
        """Return complete lines with their host's prefix."""
        return b"".join(self._prefixes[host] + line + b"\n" for line in text.split(b"\n")[:-1])
