"""A /proc directory with processes and sockets that a test describes."""

import ipaddress
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

BOOT_S = 1_700_000_000
STATUS = "Name:\tjava\nUid:\t{uids}\nGid:\t{gids}\nNSpid:\t{pids}\n"
HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


class ProcessTree:
    """A directory with the files of /proc that describe processes and their listening sockets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.net = folder / "self" / "net"
        self.net.mkdir(parents=True)
        (folder / "stat").write_text(f"cpu 1 2 3\nbtime {BOOT_S}\nprocesses 9\n")
        for name in ("tcp", "tcp6"):
            (self.net / name).write_text(HEADER)

    def add(
        self, pid: int, uid: int, command: Sequence[str], *, effective: int | None = None, start_s: float = 10.0
    ) -> None:
        """Add a process of a user; `effective` is its effective UID, if that differs."""
        process = self.folder / str(pid)
        process.mkdir()
        (process / "cmdline").write_text("".join(f"{word}\0" for word in command))
        self.set_user(pid, uid, effective)
        ticks = round(start_s * os.sysconf("SC_CLK_TCK"))
        (process / "stat").write_text(f"{pid} (java) S {' '.join(['1'] * 18)} {ticks} 5 6 7\n")
        (process / "exe").write_text("")

    def set_user(self, pid: int, uid: int, effective: int | None = None) -> None:
        effective = uid if effective is None else effective
        uids = f"{uid}\t{effective}\t{effective}\t{effective}"
        (self.folder / str(pid) / "status").write_text(
            STATUS.format(uids=uids, gids=f"{uid}\t{uid}\t{uid}\t{uid}", pids=f"{pid}")
        )

    def make_setuid(self, pid: int) -> None:
        (self.folder / str(pid) / "exe").chmod(0o755 | stat.S_ISUID)

    def listen(self, address: str, port: int, uid: int) -> None:
        """Add a listening socket."""
        host = ipaddress.ip_address(address)
        words = [host.packed[at : at + 4] for at in range(0, len(host.packed), 4)]
        text = "".join((word[::-1] if sys.byteorder == "little" else word).hex().upper() for word in words)
        row = f"   0: {text}:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000  {uid}  0 1\n"
        with (self.net / ("tcp" if host.version == 4 else "tcp6")).open("a") as table:
            table.write(row)

    def connect(self, port: int, uid: int) -> None:
        """Add a connected socket with this local port."""
        with (self.net / "tcp").open("a") as table:
            table.write(
                f"   0: 0100007F:{port:04X} 0100007F:1234 01 00000000:00000000 00:00000000 00000000  {uid}  0 1\n"
            )
