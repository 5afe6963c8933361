"""The dead-letter file: points that a store will never take, up to a bounded size."""

import os
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

# More than a request has.
LARGEST_BYTES = 4 << 20
MODE = 0o640


class DeadLetters:
    """Writes refused points into a file, the first ones: what broke first tells most. None for nowhere."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def write(self, points: Sequence[bytes], why: str) -> int:
        """Write points with the reason; return how many of them there was room for. Raises OSError."""
        if self.path is None:
            return 0
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, MODE)
        try:
            room = LARGEST_BYTES - os.fstat(descriptor).st_size
            lines = [f"# {why}".encode(), *points]
            ends = accumulate(len(line) + 1 for line in lines)
            fitting = lines[: sum(1 for end in ends if end <= room)]
            if len(fitting) > 1:
                os.write(descriptor, b"".join(b"%b\n" % line for line in fitting))
            return max(len(fitting) - 1, 0)
        finally:
            os.close(descriptor)
