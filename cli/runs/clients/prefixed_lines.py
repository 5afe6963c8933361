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
        """Return the lines that `data` completes, with their prefixes."""
        *lines, rest = (self._incomplete.get((host, stream), b"") + data).split(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            lines.append(rest)
            rest = b""
        self._incomplete[host, stream] = rest
        return b"".join(self._prefixes[host] + line + b"\n" for line in lines)

    def rest(self) -> Iterator[tuple[int, bytes]]:
        """For each incomplete last line, yield its stream, and the line with its prefix and a line feed."""
        for (host, stream), line in self._incomplete.items():
            if line:
                yield stream, self._prefixes[host] + line + b"\n"
