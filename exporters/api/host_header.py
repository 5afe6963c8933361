"""The names in a Host header that mean this agent.

A web page may have its own name resolve to the agent's address and then read the answers (DNS rebinding). Its requests
carry the page's name, so an agent without credentials must not answer to every name. A page cannot have an IP address
of others for a name, so that these are always answered.
"""

import re
import socket
from collections.abc import Callable, Iterable, Mapping

from exporters.api.client_addresses import ip_of, is_loopback

_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_HEADER = re.compile(r"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[^:\[\]]+))(?::\d{0,5})?")
# Browsers send at least one of these, whatever a page asks them to leave out.
_BROWSER = (b"origin", b"referer", b"sec-fetch-site", b"sec-fetch-mode", b"accept-language")


def is_host_name(text: str) -> bool:
    """Return whether a text can be the name of a host."""
    return len(text) <= 253 and _NAME.fullmatch(_plain(text)) is not None


class Hosts:
    """The names under which an agent is reached."""

    def __init__(self, names: Iterable[str] = (), hostname: Callable[[], str] = socket.gethostname) -> None:
        """Take names beside those of the machine itself, and what returns the machine's name."""
        self._names = frozenset(["localhost", *map(_plain, names)])
        self._hostname = hostname

    def knows(self, header: str) -> bool:
        """Return whether a Host header holds an IP address or a name of this agent."""
        found = _HEADER.fullmatch(header.lower())
        if found is None:
            return False
        name = _plain(found["six"] or found["name"])
        machine = _plain(self._hostname())
        return ip_of(name) is not None or name in self._names or name in (machine, machine.partition(".")[0])

    def refused(self, headers: Mapping[bytes, bytes], local: str) -> str:
        """Return why a request without credentials is not answered; "" if it is.

        `local` is the agent's address on the connection. On others than loopback addresses a name may be an alias that
        only the DNS knows, as Prometheus uses them: there it is refused to browsers only.
        """
        if b"host" not in headers:
            # HTTP/1.0, which no browser speaks.
            return ""
        header = headers[b"host"].decode("latin-1")
        if self.knows(header) or not (is_loopback(local) or _is_browser(headers)):
            return ""
        return f"the Host header names {header[:100]!r}: use an IP address, or allow this name with allow_host"


def _plain(name: str) -> str:
    return name.lower().removesuffix(".")


def _is_browser(headers: Mapping[bytes, bytes]) -> bool:
    return headers.get(b"user-agent", b"").startswith(b"Mozilla/") or any(name in headers for name in _BROWSER)
