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
        """Return the lines that `data` completes, without prefixes, or a part of a very long one."""
        complete, line_feed, rest = (self._incomplete.get((host, stream), b"") + data).rpartition(b"\n")
        text = complete + line_feed
        if len(rest) > MAX_LINE_BYTES:
            text += rest
            rest = b""
        self._incomplete[host, stream] = rest
        return text

    def rest(self) -> Iterator[tuple[int, int, bytes]]:
        """For each incomplete last line, yield its host, its stream, and the line with a line feed."""
        for (host, stream), line in self._incomplete.items():
            if line:
                yield host, stream, line + b"\n"

    def prefixed(self, host: int, text: bytes) -> bytes:
        """Return lines with their host's prefix; a part of a line becomes a line."""
        lines = text.removesuffix(b"\n").split(b"\n") if text else []
        return b"".join(self._prefixes[host] + line + b"\n" for line in lines)
