"""Addresses of nodes on the command line: a casstat agent or a Jolokia agent."""

from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from collector.jolokia.client import DEFAULT_PORTS
from collector.printable import one_line

AGENT_PORT = 17199
EXAMPLES = "use an address such as 10.0.0.7, https://10.0.0.7:17199 or http://10.0.0.7:8778/jolokia"


class NodeAddressError(ValueError):
    """The address of a node is invalid; the one-line message contains the reason and a hint."""


@dataclass(frozen=True)
class NodeAddress:
    """Address of a casstat agent or a Jolokia agent; `path` is "" for a casstat agent."""

    scheme: str
    host: str
    port: int
    path: str = ""

    @property
    def is_agent(self) -> bool:
        """Whether this is a casstat agent, not a Jolokia agent."""
        return not self.path

    @property
    def url(self) -> str:
        """The complete URL."""
        return f"{self.scheme}://{self.authority}{self.path}"

    @property
    def authority(self) -> str:
        """HOST:PORT, with brackets around an IPv6 address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def with_host(self, host: str) -> "NodeAddress":
        """Return the same address on another host."""
        return replace(self, host=host)


def parse_address(text: str, scheme: str = "http") -> NodeAddress:
    """Return a node's address: a URL with a path or Jolokia's port is a Jolokia agent, everything else a casstat agent.

    `scheme` applies to an address without one. Raises NodeAddressError.
    """
    if "@" in text:
        raise NodeAddressError("a node's address must not contain a user and password: other local users can read it")
    invalid = NodeAddressError(f"'{one_line(text)}' is not a node's address: {EXAMPLES}")
    # More than one colon without brackets: a bare IPv6 address.
    bare = f"[{text}]" if text.count(":") > 1 and "://" not in text and not text.startswith("[") else text
    try:
        parts = urlsplit(bare if "://" in bare else f"{scheme}://{bare}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise invalid from None
    if parts.scheme not in DEFAULT_PORTS or not host or port == 0 or parts.query or parts.fragment:
        raise invalid
    if not all("!" <= character <= "~" for character in text):
        raise invalid
    path = parts.path.rstrip("/")
    if path or port == DEFAULT_PORTS["http"]:
        return NodeAddress(parts.scheme, host, port or DEFAULT_PORTS[parts.scheme], path or "/jolokia")
    return NodeAddress(parts.scheme, host, port or AGENT_PORT)
