"""Reads /proc/PID/stat and /proc/PID/task/TID/stat (proc(5))."""

from dataclasses import dataclass
from pathlib import Path

from collector.model.snapshot import SourceError
from collector.node.host.kernel_files import read_text


@dataclass(frozen=True)
class ProcessStat:
    """A process or thread: its name, start time (since boot) and CPU time in clock ticks, and resident memory in pages.

    `state` is a letter, such as R (running) or Z (zombie).

    PIDs and TIDs are reused; the start time tells two processes or threads with the same number apart.
    """

    name: str
    start: int
    cpu_ticks: int
    resident_pages: int
    state: str = ""


def parse_stat(stat: str) -> ProcessStat:
    """Parse a stat file, whose second field, the name, may contain spaces and parentheses.

    Raises IndexError and ValueError for other text.
    """
    before, _, after = stat.rpartition(")")
    fields = after.split()
    return ProcessStat(
        before.partition("(")[2], int(fields[19]), int(fields[11]) + int(fields[12]), int(fields[21]), fields[0]
    )


def stat_in(folder: Path | str) -> ProcessStat | None:
    """Return the process or thread whose directory in /proc is `folder`; None if it has ended."""
    try:
        return parse_stat(read_text(f"{folder}/stat"))
    except (SourceError, IndexError, ValueError):
        return None
