"""Find things out, so that nobody needs to configure them: what the node says of itself, its disk, its interface."""

import ipaddress
import json
import os
import re
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import psutil

from collector.beans import LARGEST
from collector.host import text_of
from collector.jolokia import Jolokia, JolokiaError
from collector.local import Facts
from collector.model import SourceError
from collector.sources.storage import SERVICE

# How mountinfo writes blanks and backslashes in paths.
_ESCAPED = re.compile(r"\\([0-7]{3})")


def ask_facts(jolokia: Jolokia, timeout_s: float) -> Facts:
    """Ask the node about itself; what it does not say stays empty. Raises JolokiaError as `Jolokia.ask`."""
    wanted = {
        SERVICE: ["LocalHostId", "EndpointToHostId", "AllDataFileLocations"],
        "java.lang:type=Runtime": ["Name", "StartTime"],
    }
    requests = [json.dumps({"type": "read", "mbean": bean, "attribute": names}) for bean, names in wanted.items()]
    service, runtime = (_mapping(answer.get("value")) for answer in jolokia.ask(requests, timeout_s))
    own = service.get("LocalHostId")
    hosts = _mapping(service.get("EndpointToHostId"))
    address = next((_address(endpoint) for endpoint, host in hosts.items() if host == own), "")
    places = service.get("AllDataFileLocations")
    start_ms = runtime.get("StartTime")
    started_ms = start_ms if isinstance(start_ms, int) and 0 <= start_ms <= LARGEST else 0
    return Facts(
        address,
        tuple(Path(place) for place in places if isinstance(place, str)) if isinstance(places, list) else (),
        str(runtime.get("Name", "")),
        started_ms,
        peers=_addresses(hosts),
    )


def ask_peers(jolokia: Jolokia, timeout_s: float) -> tuple[str, ...]:
    """Ask the node for the addresses of its ring, sorted. Raises JolokiaError as `Jolokia.ask`."""
    request = json.dumps({"type": "read", "mbean": SERVICE, "attribute": "EndpointToHostId"})
    (answer,) = jolokia.ask([request], timeout_s)
    hosts = answer.get("value")
    if not isinstance(hosts, dict) or not hosts:
        raise JolokiaError(f"{jolokia.url}: no usable EndpointToHostId")
    return _addresses(hosts)


def _addresses(endpoints: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({_address(endpoint) for endpoint in endpoints}))


def _address(endpoint: str) -> str:
    """Return an endpoint's address; Java may write a name before it."""
    return endpoint.lstrip("/").rpartition("/")[2]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


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
        lines = text_of(proc / "mountinfo").splitlines()
    except SourceError:
        return ""
    for line in lines:
        fields, _, rest = line.partition(" - ")
        point = _ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), fields.split()[4])
        # Of two at the same place the later one covers the earlier.
        if (path == Path(point) or Path(point) in path.parents) and len(point) >= best:
            best, source = len(point), rest.split()[1]
    return source


def has_own_network(proc: Path) -> bool:
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
        lines = text_of(net / "route").splitlines()[1:]
    except SourceError:
        return ""
    return next((line.split()[0] for line in lines if line.split()[1] == "00000000"), "")
