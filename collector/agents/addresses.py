"""The addresses of nodes, and their discovery.

An address is that of a casstat agent or a Jolokia agent. Agents are discovered in a file of Prometheus' file_sd format,
or as the addresses of a name.
"""

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from collector.file_access import file_errors
from collector.node.jolokia.client import DEFAULT_PORTS
from collector.printable import one_line

AGENT_PORT = 17199
"""The port on which agents listen by default."""
LOCAL_HOST = "localhost"
"""The name by which an agent is addressed through a UNIX socket."""
EXAMPLES = "use an address such as 10.0.0.7, https://10.0.0.7:17199 or http://10.0.0.7:8778/jolokia"
MAX_FILE_BYTES = 1 << 22
# The depth of a YAML file; the time that scanning takes grows with its square.
MAX_DEPTH = 100


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


class DiscoveryError(Exception):
    """Agents cannot be found. The message is one line: where, cause and possibly a hint."""


def file_addresses(path: Path) -> list[str]:
    """Return the addresses in a file: a JSON or YAML list of groups, each with a list of `targets` (HOST:PORT).

    A group's label `__scheme__` may be https; other labels are ignored. Raises DiscoveryError.
    """
    with file_errors(path, DiscoveryError), path.open("rb") as file:
        text = file.read(MAX_FILE_BYTES + 1)
    if len(text) > MAX_FILE_BYTES:
        raise DiscoveryError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
    try:
        return list(_targets(_parsed(path, text)))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DiscoveryError(
            f"{path}: not a list of target groups ({one_line(error)}) (hint: use Prometheus' file_sd format, such as "
            '[{"targets": ["10.0.0.7:17199"]}])'
        ) from None


def _parsed(path: Path, text: bytes) -> Any:
    if path.suffix not in (".yml", ".yaml"):
        return json.loads(text)
    # Imported here, because only these files need it.
    import yaml

    try:
        begins = (
            *(yaml.BlockMappingStartToken, yaml.BlockSequenceStartToken),
            *(yaml.FlowMappingStartToken, yaml.FlowSequenceStartToken),
        )
        ends = (yaml.BlockEndToken, yaml.FlowMappingEndToken, yaml.FlowSequenceEndToken)
        depth = 0
        for token in yaml.scan(text):
            # With aliases, a small file can describe billions of targets.
            if isinstance(token, yaml.AliasToken):
                raise ValueError("it has an alias")
            depth += isinstance(token, begins) - isinstance(token, ends)
            if depth > MAX_DEPTH:
                raise ValueError("it is nested too deeply")
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(type(error).__name__) from None


def _targets(groups: Any) -> Iterator[str]:
    if not isinstance(groups, list):
        raise TypeError("not a list")
    for group in groups:
        scheme = (group.get("labels") or {}).get("__scheme__", "")
        targets = group["targets"]
        if not isinstance(targets, list):
            raise TypeError("targets is not a list")
        for target in targets:
            if not isinstance(target, str):
                raise TypeError("a target is not text")
            yield f"{scheme}://{target}" if scheme else target


def dns_addresses(name: str) -> list[str]:
    """Return the addresses of a name, NAME or NAME:PORT, as HOST:PORT in ascending order. Raises DiscoveryError."""
    host, _, port = name.partition(":")
    if port and not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 1 << 16):
        raise DiscoveryError(f"{one_line(name)}: invalid port (hint: use NAME or NAME:PORT)")
    try:
        entries = socket.getaddrinfo(host, int(port or AGENT_PORT), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "invalid name"
        raise DiscoveryError(f"{one_line(host)}: cannot resolve the name: {reason}") from None
    addresses = sorted({(str(entry[4][0]), str(entry[4][1])) for entry in entries})
    return [f"[{address}]:{port}" if ":" in address else f"{address}:{port}" for address, port in addresses]
