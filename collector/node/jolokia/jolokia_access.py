"""Credentials for a Jolokia agent and, if the agent is a proxy, for the JMX of the node behind it."""

import re
from dataclasses import dataclass, field

from collector.http.access import Access, AccessError

JMX_PORT = 7199

_HOST_PORT = re.compile(r"(?P<host>[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
_SERVICE_URL = re.compile(r"service:jmx:[!-~]+")


@dataclass(frozen=True)
class JolokiaAccess(Access):
    """Credentials for a Jolokia agent and for the node behind it.

    target           JMX address (HOST, HOST:PORT or service URL) of the node to read through a Jolokia proxy; ""
                     for the node that Jolokia runs in.
    target_user, target_password   credentials for the target's JMX.
    """

    target: str = ""
    target_user: str = ""
    target_password: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        """Raise AccessError if a field is invalid, or requires another field that is missing."""
        super().__post_init__()
        if (self.target_user or self.target_password) and not self.target:
            raise AccessError("JMX credentials require the node's JMX address", missing="target")
        if self.target_password and not self.target_user:
            raise AccessError("the JMX password requires a JMX user name", missing="target_user")
        if self.target:
            service_url(self.target)

    @property
    def _secrets(self) -> tuple[str, ...]:
        return (*super()._secrets, self.target_password)


NO_ACCESS = JolokiaAccess()
"""For a Jolokia agent that requires no credentials."""


def service_url(target: str) -> str:
    """Return the JMX service URL for `target` (HOST, HOST:PORT or a service URL). Raises AccessError."""
    if "@" in target:
        raise AccessError("the JMX address must not contain a user name and password", missing="target_user")
    if _SERVICE_URL.fullmatch(target):
        return target
    match = _HOST_PORT.fullmatch(target)
    port = int(match["port"] or JMX_PORT) if match else 0
    if match is None or not 0 < port < 1 << 16:
        raise AccessError("not a JMX address such as 10.0.0.7:7199", "target")
    return f"service:jmx:rmi:///jndi/rmi://{match['host']}:{port}/jmxrmi"
