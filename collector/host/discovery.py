"""Discovers a node's disk and network interface, and whether the node runs on this machine."""

import ipaddress
import os
import re
import socket
from pathlib import Path

import psutil

from collector.host.kernel_files import read_text
from collector.model.snapshot import SourceError

# Paths in mountinfo contain octal escapes for spaces, tabs, line feeds and backslashes.
_ESCAPED = re.compile(r"\\([0-7]{3})")


def is_this_machine(host: str) -> bool:
    """Return whether `host` (a name or address) is this machine; False if the name cannot be resolved."""
    try:
        resolved = {ipaddress.ip_address(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except (OSError, ValueError):
        return False
    local = {entry.address.partition("%")[0] for entries in psutil.net_if_addrs().values() for entry in entries}
    return any(address.is_loopback or str(address) in local for address in resolved)


def disk_of(path: Path, proc: Path, root: Path = Path("/")) -> str:
    """Return the disk on which `path` is stored, as named in /proc/diskstats; "" if there is none.

    If it is stored on a partition, the whole disk is returned. `path` is in the mount namespace of the process whose
    directory is `proc`, such as /proc/123.
    """
    for candidate in (proc / "root" / str(path).lstrip("/"), path):
        try:
            device = candidate.stat().st_dev
            break
        except OSError:
            continue
    else:
        return ""
    if os.major(device):
        return _block_device(device, root)
    # btrfs, overlay and similar file systems have their own device numbers, so use the mounted device instead.
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
        fields, _, device_fields = line.partition(" - ")
        point = _ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), fields.split()[4])
        # A later mount hides earlier ones at the same mount point.
        if (path == Path(point) or Path(point) in path.parents) and len(point) >= best:
            best, source = len(point), device_fields.split()[1]
    return source


def has_separate_network(proc: Path) -> bool:
    """Return whether the process at `proc` (/proc/PID) is in a different network namespace from casstat.

    Returns True if the namespaces cannot be read.
    """
    try:
        return os.stat(proc / "ns" / "net").st_ino != os.stat("/proc/self/ns/net").st_ino  # noqa: PTH116
    except OSError:
        # The namespace of another user's process cannot be read. Assume that it differs: reading the process's own
        # /proc/PID/net is correct either way.
        return True


def interface_of(address: str, net: Path) -> str:
    """Return the interface with this address, else that of the default route in `net`/route; "" if there is none."""
    try:
        target = ipaddress.ip_address(address)
    except ValueError:
        return _default_interface(net)
    for name, addresses in psutil.net_if_addrs().items():
        for entry in addresses:
            try:
                own_address = ipaddress.ip_address(entry.address.partition("%")[0])
            except ValueError:
                continue
            if own_address == target or (own_address.is_loopback and target.is_loopback):
                return name
    return _default_interface(net)


def _default_interface(net: Path) -> str:
    try:
        lines = read_text(net / "route").splitlines()[1:]
    except SourceError:
        return ""
    return next((line.split()[0] for line in lines if line.split()[1] == "00000000"), "")
