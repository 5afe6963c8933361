"""Discovers a node's disk and network interface, and whether the node runs on this machine."""

import ipaddress
import os
import re
import socket
from collections.abc import Iterable
from pathlib import Path

import psutil

from collector.node.host.kernel_files import text_in

# Paths in mountinfo contain octal escapes for spaces, tabs, line feeds and backslashes.
_ESCAPED = re.compile(r"\\([0-7]{3})")
# Flags of routes, as in <linux/route.h>.
_ROUTE_UP, _ROUTE_REJECT = 0x1, 0x200


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
    for line in text_in(proc / "mountinfo").splitlines():
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


def disks_of(paths: Iterable[Path], proc: Path, root: Path = Path("/")) -> tuple[str, ...]:
    """Return the disks on which `paths` are stored, each once, in their order; paths without a disk are left out."""
    return tuple(dict.fromkeys(filter(None, (disk_of(path, proc, root) for path in paths))))


def interface_of(address: str, net: Path) -> str:
    """Return the interface with this address, else that of the first default route; "" if there is none.

    net  a network namespace's directory in /proc. If it is not casstat's own, it may lack the interface with the
         address: that of a container's node may be the machine's.
    """
    interface = interface_with(address)
    known = {row[0].partition(":")[0] for row in _rows(net / "dev") if row}
    return interface if interface in known else next(iter(default_interfaces(net)), "")


def interface_with(address: str) -> str:
    """Return the interface in casstat's own network namespace that has this address; "" if there is none."""
    try:
        target = ipaddress.ip_address(address)
    except ValueError:
        return ""
    for name, addresses in psutil.net_if_addrs().items():
        for entry in addresses:
            try:
                own_address = ipaddress.ip_address(entry.address.partition("%")[0])
            except ValueError:
                continue
            if own_address == target or (own_address.is_loopback and target.is_loopback):
                # The kernel's tables have no labels of addresses, such as eth0:1.
                return name.partition(":")[0]
    return ""


def default_interfaces(net: Path) -> list[str]:
    """Return the interfaces of all default routes that are up: those of IPv4, then those of IPv6, best metric first.

    Raises ValueError if the kernel's tables are malformed.
    """
    routes = []
    for row in _rows(net / "route")[1:]:
        interface, destination, _, flags, _, _, metric, mask = row[:8]
        if int(destination, 16) == int(mask, 16) == 0 and _is_usable(flags):
            routes.append((4, int(metric), interface))
    for destination, length, _, _, _, metric, _, _, flags, interface in _rows(net / "ipv6_route"):
        if int(destination, 16) == int(length, 16) == 0 and _is_usable(flags):
            routes.append((6, int(metric, 16), interface))
    return list(dict.fromkeys(interface for *_, interface in sorted(routes, key=lambda route: route[:2])))


def _rows(path: Path) -> list[list[str]]:
    return [line.split() for line in text_in(path).splitlines()]


def _is_usable(flags: str) -> bool:
    """Return whether a route is up and does not reject packets; the kernel has such a default route on `lo`."""
    return int(flags, 16) & (_ROUTE_UP | _ROUTE_REJECT) == _ROUTE_UP
