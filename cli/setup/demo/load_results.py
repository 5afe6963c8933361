"""The operations of the demo's load generator as a file that `casstat import` reads (see `docs/client-results.md`)."""

import threading
import time
from pathlib import Path

HEADER = "time_s,operation,response_ms,error\n"


class LoadResults:
    """Writes a row for each operation. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w")
        self._file.write(HEADER)
        # Responses arrive in several threads.
        self._lock = threading.Lock()

    def done(self, operation: str, response_s: float) -> None:
        """Add an operation that succeeded; `response_s` is the time since it was due."""
        self._write(f"{operation.lower()},{1000 * response_s:.3f},")

    def failed(self, operation: str, error: BaseException) -> None:
        self._write(f"{operation.lower()},,{type(error).__name__}")

    def _write(self, fields: str) -> None:
        with self._lock:
            self._file.write(f"{time.time():.6f},{fields}\n")

    def close(self) -> None:
        self._file.close()
