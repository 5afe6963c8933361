"""Whose processes and files are trusted: a node found on this machine may be any local user's imitation.

A process that is found is given credentials, and its nodetool is run, only if its user is trusted and owns the
listening socket. An address that the user names is used as it is. The
kernel's socket tables (proc_net(5)) tell who listens.
"""

import contextlib
import grp
import ipaddress
import os
import pwd
import stat
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from pathlib import Path

import psutil

CASSANDRA = "cassandra"
MAX_LINKS = 40
NET = Path("/proc/self/net")
LISTEN = "0A"
_WORD_BYTES = 4
IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


class UnknownUserError(ValueError):
    """A name is not that of a user of this machine."""


def trusted_users(names: Iterable[str] = ()) -> frozenset[int]:
    """Return the UIDs of the trusted users: root, casstat's own user, `cassandra`, and those in `names` (or UIDs).

    Raises UnknownUserError.
    """
    uids = {0, os.geteuid()}
    with contextlib.suppress(KeyError):
        uids.add(pwd.getpwnam(CASSANDRA).pw_uid)
    for name in names:
        try:
            uids.add(int(name) if name.isascii() and name.isdigit() else pwd.getpwnam(name).pw_uid)
        except (KeyError, ValueError):
            raise UnknownUserError(f"'{name}' is not a user of this machine") from None
    return frozenset(uids)


def file_problem(path: Path, users: Collection[int]) -> str:
    """Return why a user other than `users` could replace or change the file at `path`; "" if none could.

    Examines the file, every folder above it, and the same for each symbolic link on the way. In a folder with the
    sticky bit, such as /tmp, only the owner of an entry can replace it. The path must be absolute.
    """
    return files_problem([path], users)


def files_problem(paths: Iterable[Path], users: Collection[int]) -> str:
    """Return the first problem of several files, as `file_problem` does; "" if there is none."""
    # Listing a group's members may need a directory service.
    is_own_group = cache(lambda gid: _has_only_members(gid, users))
    return next(filter(None, (_path_problem(path, users, is_own_group) for path in paths)), "")


def _path_problem(path: Path, users: Collection[int], is_own_group: Callable[[int], bool]) -> str:
    here, pending = Path(path.anchor), list(reversed(path.parts[1:]))
    links = 0
    try:
        if problem := _problem(here, here.lstat(), users, is_own_group):
            return problem
        while pending:
            name = pending.pop()
            if name == "..":
                here = here.parent
                continue
            entry = here / name
            state = entry.lstat()
            if problem := _problem(entry, state, users, is_own_group):
                return problem
            if not stat.S_ISLNK(state.st_mode):
                here = entry
                continue
            links += 1
            if links > MAX_LINKS:
                return f"{path}: too many symbolic links"
            target = entry.readlink()
            if target.is_absolute():
                here = Path(target.anchor)
            pending += reversed(target.parts[1:] if target.is_absolute() else target.parts)
    except OSError as error:
        return f"{error.filename or path}: {error.strerror}"
    return ""


def _problem(path: Path, state: os.stat_result, users: Collection[int], is_own_group: Callable[[int], bool]) -> str:
    if state.st_uid not in users:
        return f"{path} belongs to another user"
    if stat.S_ISLNK(state.st_mode):
        # The mode of a link has no meaning.
        return ""
    is_shared_by_group = state.st_mode & stat.S_IWGRP and (_has_access_list(path) or not is_own_group(state.st_gid))
    is_sticky_folder = stat.S_ISDIR(state.st_mode) and state.st_mode & stat.S_ISVTX
    is_open = state.st_mode & stat.S_IWOTH or is_shared_by_group
    return f"other users can write to {path}" if is_open and not is_sticky_folder else ""


def _has_access_list(path: Path) -> bool:
    """Return whether a file has an access control list (acl(5)), whose limit the group's permissions then are."""
    try:
        return "system.posix_acl_access" in os.listxattr(path, follow_symlinks=False)
    except OSError:
        return False


def _has_only_members(gid: int, users: Collection[int]) -> bool:
    """Return whether all members of a group are `users`, as those of a user's own group and of Debian's `staff` are."""
    try:
        members = {pwd.getpwnam(name).pw_uid for name in grp.getgrgid(gid).gr_mem}
    except KeyError:
        return False
    members.update(user.pw_uid for user in pwd.getpwall() if user.pw_gid == gid)
    return members.issubset(users)


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
