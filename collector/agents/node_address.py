"""Parses node addresses from the command line; each is the address of a casstat agent or a Jolokia agent."""

from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from collector.node.jolokia.client import DEFAULT_PORTS
from collector.printable import one_line

AGENT_PORT = 17199
"""The port on which agents listen by default."""
LOCAL_HOST = "localhost"
"""The name by which an agent is addressed through a UNIX socket."""
EXAMPLES = "use an address such as 10.0.0.7, https://10.0.0.7:17199 or http://10.0.0.7:8778/jolokia"


class NodeAddressError(ValueError):
    """A node's address is invalid; the message is a single line."""


@dataclass(frozen=True)
class Tunnel:
    """How to reach a casstat agent on another machine.

    socket  the UNIX socket on this machine that leads to the agent.
    url     the address that messages and files show.
    spool   the directory on the other machine to which the agent records.
    """

    socket: str
    url: str
    spool: str


@dataclass(frozen=True)
class NodeAddress:
    """The address of a casstat agent or a Jolokia agent; `path` is "" for a casstat agent.

    If there is a `tunnel`, connections go through it.
    """

    scheme: str
    host: str
    port: int
    path: str = ""
    tunnel: Tunnel | None = None

    @property
    def is_agent(self) -> bool:
        """Whether this is a casstat agent rather than a Jolokia agent."""
        return not self.path

    @property
    def url(self) -> str:
        """The complete URL; with a tunnel, the address that messages and files show."""
        return self.tunnel.url if self.tunnel else f"{self.scheme}://{self.authority}{self.path}"

    @property
    def socket(self) -> str:
        """The UNIX socket to connect to; "" if connections use TCP."""
        return self.tunnel.socket if self.tunnel else ""

    @property
    def authority(self) -> str:
        """The address as HOST:PORT, with brackets around an IPv6 address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def with_host(self, host: str) -> "NodeAddress":
        return replace(self, host=host)


def parse_address(text: str, scheme: str = "http") -> NodeAddress:
    """Parse a node's address.

    An address with a path or Jolokia's port is a Jolokia agent's; any other is a casstat agent's. `scheme` is used if
    the address has no scheme. Raises NodeAddressError.
    """
    if text.startswith("ssh://"):
        raise NodeAddressError("only 'casstat record' can reach nodes over SSH (hint: use an agent's address)")
    if "@" in text:
        raise NodeAddressError(
            "a node's address must not contain a user name and password, "
            "because other local users can read the command line"
        )
    invalid = NodeAddressError(f"'{one_line(text)}' is not a valid node address (hint: {EXAMPLES})")
    # An address with more than one colon and no brackets is a bare IPv6 address.
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
