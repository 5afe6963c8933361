"""Points that a store will never take: kept in a file that is bounded, for people to look at."""

import os
from collections.abc import Sequence
from pathlib import Path

LARGEST_BYTES = 1 << 20
MODE = 0o640


class Aside:
    """Writes refused points into a file, the first ones: what broke first tells most. None for nowhere."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def write(self, points: Sequence[bytes], why: str) -> bool:
        """Write points with the reason; return whether there was room for all. Raises OSError."""
        if self.path is None:
            return False
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, MODE)
        try:
            room = LARGEST_BYTES - os.fstat(descriptor).st_size
            text = f"# {why}\n".encode() + b"".join(b"%b\n" % point for point in points)
            if len(text) > room:
                return False
            os.write(descriptor, text)
        finally:
            os.close(descriptor)
        return True
