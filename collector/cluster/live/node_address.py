"""What a node's address on the command line means: an agent, or a Jolokia."""

from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from collector.jolokia.client import DEFAULT_PORTS
from collector.printable import one_line

AGENT_PORT = 17199
EXAMPLE = "one looks like 10.0.0.7, https://10.0.0.7:17199 or http://10.0.0.7:8778/jolokia"


class TargetError(ValueError):
    """What was given as a node cannot be one; the message says why and what to do, in one line."""


@dataclass(frozen=True)
class Target:
    """Where to ask for a node.

    path  of a Jolokia; "" for an agent.
    """

    scheme: str
    host: str
    port: int
    path: str = ""

    @property
    def is_agent(self) -> bool:
        """Whether an agent is asked; else a Jolokia."""
        return not self.path

    @property
    def url(self) -> str:
        """The whole of it."""
        return f"{self.scheme}://{self.authority}{self.path}"

    @property
    def authority(self) -> str:
        """Host and port, as HTTP has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def beside(self, host: str) -> "Target":
        """Return the same on another host."""
        return replace(self, host=host)


def target_of(text: str, scheme: str = "http") -> Target:
    """Return what an address means: a URL with a path, or Jolokia's port, is a Jolokia's, all else an agent's.

    `scheme` is that of one that names none. Raises TargetError.
    """
    if "@" in text:
        raise TargetError("a node's address holds no user and password: others on this machine could read them")
    shown = one_line(text)
    # More colons than before a port: an address of IPv6.
    bare = f"[{text}]" if text.count(":") > 1 and "://" not in text and not text.startswith("[") else text
    try:
        parts = urlsplit(bare if "://" in bare else f"{scheme}://{bare}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise TargetError(f"'{shown}' is no node: {EXAMPLE}") from None
    if parts.scheme not in DEFAULT_PORTS or not host or port == 0 or parts.query or parts.fragment:
        raise TargetError(f"'{shown}' is no node: {EXAMPLE}")
    if not all("!" <= letter <= "~" for letter in text):
        raise TargetError(f"'{shown}' is no node: {EXAMPLE}")
    path = parts.path.rstrip("/")
    if path or port == DEFAULT_PORTS["http"]:
        return Target(parts.scheme, host, port or DEFAULT_PORTS[parts.scheme], path or "/jolokia")
    return Target(parts.scheme, host, port or AGENT_PORT)
