"""Where the API listens: an address as people write it, and the sockets that are bound to it."""

import errno
import re
import socket
from collections.abc import Sequence
from typing import Any

DEFAULT = "127.0.0.1:17199"
BACKLOG = 1024
_WRITTEN = re.compile(r"(?:\[(?P<six>[^\]]*)\]|(?P<name>[^:\[\]]*)):(?P<port>\d{1,5})")
_WHY = {
    errno.EADDRINUSE: "is taken by another program: end that, or listen at another port",
    errno.EACCES: "may not be listened at: ports below 1024 are for root",
    errno.EADDRNOTAVAIL: "is no address of this machine",
}


class ListenError(Exception):
    """Nothing can be listened at; the message says where, why and what to do, in one line."""


def address(listen: str) -> tuple[str, int]:
    """Return host ("" for all addresses) and port of HOST:PORT, :PORT or [ADDRESS]:PORT. Raises ListenError."""
    found = _WRITTEN.fullmatch(listen)
    if found is None or int(found["port"]) > 65535:
        raise ListenError(f"{listen!r}: is not HOST:PORT, :PORT or [ADDRESS]:PORT")
    return found["six"] or found["name"] or "", int(found["port"])


def bound(listen: str) -> socket.socket:
    """Return a socket that listens at HOST:PORT. Raises ListenError."""
    host, port = address(listen)
    try:
        places: Sequence[tuple[socket.AddressFamily, Any]]
        if host:
            found = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM, 0, socket.AI_PASSIVE)
            # A name that means both is, as with others' exporters, the address of IPv4.
            places = sorted(((row[0], row[4]) for row in found), key=lambda place: place[0] != socket.AF_INET)[:1]
        else:
            places = [(socket.AF_INET6, ("::", port)), (socket.AF_INET, ("0.0.0.0", port))]  # noqa: S104
    except (OSError, UnicodeError):
        raise ListenError(f"{listen}: {host} cannot be resolved: give an address") from None
    for family, place in places[:-1]:
        try:
            return _listening(family, place)
        except OSError as error:
            if error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
                raise _told(listen, error) from None
    try:
        return _listening(*places[-1])
    except OSError as error:
        raise _told(listen, error) from None


def _told(listen: str, error: OSError) -> ListenError:
    return ListenError(f"{listen}: {_WHY.get(error.errno or 0, error.strerror)}")


def _listening(family: socket.AddressFamily, place: Any) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(place[0] != "::"))
        made.bind(place)
        made.listen(BACKLOG)
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made
