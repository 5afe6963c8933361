"""CPU and memory use of casstat top itself."""

import os
import time
from pathlib import Path

STATM = Path("/proc/self/statm")
# The CPU share is averaged over this period so that the displayed value stays steady.
PERIOD_S = 5.0


class SelfCost:
    """Measures this process's CPU share and memory use."""

    def __init__(self) -> None:
        self._cpu_s = time.process_time()
        self._at_s = time.monotonic()
        self._pct: float | None = None

    def measured(self) -> tuple[float | None, float | None]:
        """Return the recent CPU usage as a percentage of one core, and the resident memory in MiB; None if unknown."""
        now_s = time.monotonic()
        if now_s - self._at_s >= (PERIOD_S if self._pct is not None else 1.0):
            cpu_s = time.process_time()
            self._pct = 100 * (cpu_s - self._cpu_s) / (now_s - self._at_s)
            self._cpu_s, self._at_s = cpu_s, now_s
        return self._pct, resident_mib()

    def words(self) -> str:
        """Return the CPU and memory use as text."""
        pct, size_mib = self.measured()
        cost = "-" if pct is None else f"{pct:.0f}" if pct >= 1 else f"{pct:.1f}"
        return f"top {cost}% CPU, {'-' if size_mib is None else f'{size_mib:.0f}'} MiB"


def resident_mib() -> float | None:
    """Return this process's resident memory in MiB, or None if unknown."""
    try:
        pages = int(STATM.read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
