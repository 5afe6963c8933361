"""The machine that casstat runs on: where its figures are found, and reading them without surprises."""

import os
from dataclasses import dataclass
from pathlib import Path

from collector.model.snapshot import SourceError

MAX_FILE_BYTES = 4 << 20


@dataclass(frozen=True)
class Host:
    """What of this machine is watched.

    root         of the file system: tests pass a captured tree.
    pid          of the Cassandra process, None without one here.
    disks        block devices, such as sda or md0; empty for all.
    interfaces   network interfaces; empty for all.
    directories  whose file systems are watched.
    own_network  whether that process has a network of its own (a container's), not this process'.
    """

    root: Path = Path("/")
    pid: int | None = None
    disks: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()
    directories: tuple[Path, ...] = ()
    separate_network: bool = False

    @property
    def proc(self) -> Path:
        """The proc file system."""
        return self.root / "proc"

    @property
    def process_dir(self) -> Path:
        """Where Cassandra's process shows itself; this process stands in when it is not there."""
        return self.proc / str(self.pid) if self.process_exists else self.proc / "self"

    @property
    def network_dir(self) -> Path:
        """Where the network shows itself that Cassandra's process is in."""
        return self.proc / (str(self.pid) if self.separate_network else "self") / "net"

    @property
    def process_exists(self) -> bool:
        """Whether the Cassandra process is there."""
        return self.pid is not None and (self.proc / str(self.pid)).exists()


def read_text(path: Path) -> str:
    """Return what a file of the kernel's says. Raises SourceError when it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from None
    try:
        text = bytearray()
        while len(text) < MAX_FILE_BYTES and (part := os.read(descriptor, 1 << 16)):
            text += part
        return text.decode(errors="replace")
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from None
    finally:
        os.close(descriptor)
