"""The dead-letter file: points that the store refuses for good, up to a size limit."""

import os
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

# Maximum size of the file; it has room for all points of one request.
MAX_BYTES = 4 << 20
MODE = 0o640


class DeadLetters:
    """Appends refused points to a file until it is full, and drops later ones, because the first are the most useful.

    If the path is None, nothing is written.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def write(self, points: Sequence[bytes], reason: str) -> int:
        """Write points and the reason; return the number of points that fit. Raises OSError."""
        if self.path is None:
            return 0
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, MODE)
        try:
            room = MAX_BYTES - os.fstat(descriptor).st_size
            lines = [f"# {reason}".encode(), *points]
            ends = accumulate(len(line) + 1 for line in lines)
            fitting = lines[: sum(1 for end in ends if end <= room)]
            if len(fitting) > 1:
                os.write(descriptor, b"".join(b"%b\n" % line for line in fitting))
            return max(len(fitting) - 1, 0)
        finally:
            os.close(descriptor)
