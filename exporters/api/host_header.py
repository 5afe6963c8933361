"""Checks whether a Host header names this agent.

A web page can make its own name resolve to the agent's address and then read the responses (DNS rebinding). The browser
sends the page's name in the Host header, so an agent without credentials must not accept every name. A page cannot use
someone else's IP address as its name, so IP addresses are always accepted.
"""

import re
import socket
from collections.abc import Callable, Iterable, Mapping

from exporters.api.client_addresses import ip_of, is_loopback

_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_HEADER = re.compile(r"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[^:\[\]]+))(?::\d{0,5})?")
# Browsers send at least one of these headers, and a page cannot suppress all of them.
_BROWSER = (b"origin", b"referer", b"sec-fetch-site", b"sec-fetch-mode", b"accept-language")


def is_host_name(text: str) -> bool:
    """Return whether `text` is a syntactically valid host name."""
    return len(text) <= 253 and _NAME.fullmatch(_plain(text)) is not None


class Hosts:
    """The host names by which clients may address this agent."""

    def __init__(self, names: Iterable[str] = (), hostname: Callable[[], str] = socket.gethostname) -> None:
        """Accept `names` in addition to "localhost" and the machine's name, which `hostname` returns."""
        self._names = frozenset(["localhost", *map(_plain, names)])
        self._hostname = hostname

    def knows(self, header: str) -> bool:
        """Return whether a Host header contains an IP address or a name of this agent."""
        match = _HEADER.fullmatch(header.lower())
        if match is None:
            return False
        name = _plain(match["six"] or match["name"])
        machine = _plain(self._hostname())
        return ip_of(name) is not None or name in self._names or name in (machine, machine.partition(".")[0])

    def refusal_reason(self, headers: Mapping[bytes, bytes], local: str) -> str:
        """Return the reason to refuse a request to an agent without TLS or passwords; "" if the request is allowed.

        `local` is the connection's local address. Unless it is a loopback address, an unknown name may be a DNS alias
        that a client such as Prometheus uses, so only requests from browsers are refused.
        """
        if b"host" not in headers:
            # Only an HTTP/1.0 request may lack the header, and browsers do not use HTTP/1.0.
            return ""
        header = headers[b"host"].decode("latin-1")
        if self.knows(header) or not (is_loopback(local) or _is_browser(headers)):
            return ""
        return f"unknown name {header[:100]!r} in the Host header (hint: use an IP address or set allow_host)"


def _plain(name: str) -> str:
    return name.lower().removesuffix(".")


def _is_browser(headers: Mapping[bytes, bytes]) -> bool:
    return headers.get(b"user-agent", b"").startswith(b"Mozilla/") or any(name in headers for name in _BROWSER)
