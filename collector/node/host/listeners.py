"""Which users listen on a TCP address of this machine, according to the kernel's socket tables (proc_net(5))."""

import ipaddress
import pwd
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import psutil

NET = Path("/proc/self/net")
LISTEN = "0A"
_WORD_BYTES = 4
IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def user_name(uid: int) -> str:
    """Return the name of a user, or the UID if it has no name on this machine."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def user_names(uids: Collection[int]) -> str:
    return ", ".join(user_name(uid) for uid in sorted(uids))


def listening_users(address: str, port: int, net: Path = NET) -> frozenset[int]:
    """Return the UIDs of all sockets that listen on `port` at `address` or at all addresses.

    `net` holds the tables of the network namespace in which the address is used. Returns an empty set if nothing
    listens, or if the tables cannot be read.
    """
    target = _plain(ipaddress.ip_address(address.partition("%")[0]))
    return frozenset(
        uid
        for name in ("tcp", "tcp6")
        for host, listening_port, uid in _listeners(net / name)
        if listening_port == port and (host == target or host.is_unspecified)
    )


def listener_problem(address: str, port: int, users: Collection[int], net: Path = NET) -> str:
    """Return why the listener at this address is not one of `users`' on this machine; "" if it is.

    A socket bound to one address and one bound to all addresses may both exist, so all of them must be `users`'.
    """
    if not _is_own(address):
        return "it is not an address of this machine"
    owners = listening_users(address, port, net)
    if not owners:
        return "its listener is unknown: this machine's socket table does not contain it"
    foreign = owners.difference(users)
    return f"it belongs to user {user_names(foreign)}, not to {user_names(users)}" if foreign else ""


def _is_own(address: str) -> bool:
    target = _plain(ipaddress.ip_address(address.partition("%")[0]))
    if target.is_loopback:
        return True
    own = (entry.address.partition("%")[0] for entries in psutil.net_if_addrs().values() for entry in entries)
    return str(target) in own


def _listeners(path: Path) -> Iterator[tuple[IpAddress, int, int]]:
    """Yield the address, port and UID of each listening socket in a table."""
    try:
        with path.open() as table:
            next(table, None)
            for line in table:
                fields = line.split()
                # The kernel lists the listening sockets first, and there may be thousands of others.
                if fields[3] != LISTEN:
                    return
                host, _, port = fields[1].partition(":")
                yield _plain(_address(host)), int(port, 16), int(fields[7])
    except (OSError, ValueError, IndexError):
        return


def _address(text: str) -> IpAddress:
    """Return the address in a table: 32-bit words in hexadecimal, in the byte order of the machine."""
    raw = bytes.fromhex(text)
    if sys.byteorder == "little":
        raw = b"".join(raw[at : at + _WORD_BYTES][::-1] for at in range(0, len(raw), _WORD_BYTES))
    return ipaddress.ip_address(raw)


def _plain(address: IpAddress) -> IpAddress:
    """Return the IPv4 address of an IPv4-mapped IPv6 address, and any other address unchanged."""
    return getattr(address, "ipv4_mapped", None) or address
