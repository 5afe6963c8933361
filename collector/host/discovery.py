"""Discovery of the disk and the network interface of a node, and of whether it runs on this machine."""

import ipaddress
import os
import re
import socket
from pathlib import Path

import psutil

from collector.host.kernel_files import read_text
from collector.model.snapshot import SourceError

# How mountinfo writes blanks and backslashes in paths.
_ESCAPED = re.compile(r"\\([0-7]{3})")


def is_this_machine(host: str) -> bool:
    """Return whether `host` (a name or an address) is this machine, so far as its name can be looked up."""
    try:
        found = {ipaddress.ip_address(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except (OSError, ValueError):
        return False
    own = {each.address.partition("%")[0] for addresses in psutil.net_if_addrs().values() for each in addresses}
    return any(address.is_loopback or str(address) in own for address in found)


def disk_of(path: Path, proc: Path, root: Path = Path("/")) -> str:
    """Return the block device under `path` as /proc/diskstats calls it, whole disks for partitions; "" if none.

    `proc` is the folder of the process whose view of the file system `path` is in, such as /proc/123.
    """
    for seen in (proc / "root" / str(path).lstrip("/"), path):
        try:
            device = seen.stat().st_dev
            break
        except OSError:
            continue
    else:
        return ""
    if os.major(device):
        return _block_device(device, root)
    # btrfs, overlays and their like have numbers of their own: what is mounted tells the device.
    source = _mount_source(path, proc)
    try:
        return _block_device(Path(source).stat().st_rdev, root) if source.startswith("/dev/") else ""
    except OSError:
        return ""


def _block_device(number: int, root: Path) -> str:
    entry = root / "sys/dev/block" / f"{os.major(number)}:{os.minor(number)}"
    try:
        folder = entry.resolve(strict=True)
    except OSError:
        return ""
    return folder.parent.name if (folder / "partition").exists() else folder.name


def _mount_source(path: Path, proc: Path) -> str:
    best, source = -1, ""
    try:
        lines = read_text(proc / "mountinfo").splitlines()
    except SourceError:
        return ""
    for line in lines:
        fields, _, rest = line.partition(" - ")
        point = _ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), fields.split()[4])
        # Of two at the same place the later one covers the earlier.
        if (path == Path(point) or Path(point) in path.parents) and len(point) >= best:
            best, source = len(point), rest.split()[1]
    return source


def has_separate_network(proc: Path) -> bool:
    """Return whether the process with this folder in /proc has another network than this process."""
    try:
        return os.stat(proc / "ns" / "net").st_ino != os.stat("/proc/self/ns/net").st_ino  # noqa: PTH116
    except OSError:
        # Another user's process does not show: reading its network through itself is right either way.
        return True


def interface_of(address: str, net: Path) -> str:
    """Return the interface that has `address`, else the one of the default route in `net`; "" when there is none."""
    try:
        wanted = ipaddress.ip_address(address)
    except ValueError:
        return _default_interface(net)
    for name, addresses in psutil.net_if_addrs().items():
        for each in addresses:
            try:
                have = ipaddress.ip_address(each.address.partition("%")[0])
            except ValueError:
                continue
            if have == wanted or (have.is_loopback and wanted.is_loopback):
                return name
    return _default_interface(net)


def _default_interface(net: Path) -> str:
    try:
        lines = read_text(net / "route").splitlines()[1:]
    except SourceError:
        return ""
    return next((line.split()[0] for line in lines if line.split()[1] == "00000000"), "")
