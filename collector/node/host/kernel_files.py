"""Locates the kernel's files on this machine and reads them with a size limit; parses the `stat` files of proc(5)."""

import os
from dataclasses import dataclass
from pathlib import Path

from collector.model.snapshot import SourceError

MAX_FILE_BYTES = 4 << 20


@dataclass(frozen=True)
class Host:
    """The local machine, and which of its processes, devices and directories to read.

    root              root of the file system; tests pass a captured file tree.
    pid               PID of the Cassandra process; None if there is no such process.
    disks             block devices, such as sda or md0; empty for all.
    interfaces        network interfaces; empty for all.
    directories       Cassandra's data directories, which determine the file systems to read.
    separate_network  whether Cassandra's network namespace differs from this process's, for example because
                      Cassandra runs in a container.
    """

    root: Path = Path("/")
    pid: int | None = None
    disks: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()
    directories: tuple[Path, ...] = ()
    separate_network: bool = False

    @property
    def disk(self) -> str:
        """The name of the device that the disk columns show; several disks are combined, as in `sda+sdb`."""
        return "+".join(self.disks)

    @property
    def proc(self) -> Path:
        return self.root / "proc"

    @property
    def process_dir(self) -> Path:
        """The Cassandra process's directory in /proc, or this process's own if Cassandra is not running."""
        return self.proc / str(self.pid) if self.process_exists else self.proc / "self"

    @property
    def network_dir(self) -> Path:
        """The directory in /proc that contains the network statistics of Cassandra's network namespace."""
        return self.proc / (str(self.pid) if self.separate_network else "self") / "net"

    @property
    def sys_dir(self) -> Path:
        """The /sys directory that contains the interfaces of Cassandra's network namespace."""
        return (self.proc / str(self.pid) / "root" if self.separate_network else self.root) / "sys"

    @property
    def process_exists(self) -> bool:
        return self.pid is not None and (self.proc / str(self.pid)).exists()


def read_text(path: Path | str, max_bytes: int = MAX_FILE_BYTES) -> str:
    """Return the content of a kernel file; reading stops after `max_bytes`. Raises SourceError if that fails."""
    # Without `file_errors`, as this may run for each process on every tick.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            text = bytearray()
            while len(text) < max_bytes and (chunk := os.read(descriptor, 1 << 16)):
                text += chunk
            return text.decode(errors="replace")
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from None


def text_in(path: Path, max_bytes: int = MAX_FILE_BYTES) -> str:
    """Return the content of a kernel file without white space around it; "" if it cannot be read."""
    try:
        return read_text(path, max_bytes).strip()
    except SourceError:
        return ""


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
