"""What a Jolokia wants to see before it answers: a user and password, certificates, the node behind a proxy."""

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

JMX_PORT = 7199
HIDDEN = "***"

_HOST_PORT = re.compile(r"(?P<host>[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
_SERVICE_URL = re.compile(r"service:jmx:[!-~]+")


class AccessError(ValueError):
    """What was given to get access with cannot be used; the message says why and what to do, in one line."""


@dataclass(frozen=True)
class Access:
    """How to get access to a Jolokia; nothing of it where all are let in.

    user, password   of Jolokia itself (HTTP basic).
    ca               PEM file of the authorities to trust instead of the system's, for https.
    certificate      PEM file of this side's certificate, for a Jolokia that wants one.
    key              PEM file of its key, not encrypted; None when it stands in the certificate's file.
    target           the node to read through a Jolokia that is a proxy: HOST:PORT of its JMX, or a whole JMX service
                     URL; "" for the node that Jolokia itself runs in.
    target_user, target_password   of that node's JMX.
    """

    user: str = ""
    password: str = field(default="", repr=False)
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    target: str = ""
    target_user: str = ""
    target_password: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        """Raise AccessError for what cannot be meant."""
        if ":" in self.user:
            raise AccessError("a user's name for Jolokia (--jolokia-user) cannot have a colon in it")
        if self.password and not self.user:
            raise AccessError("a password for Jolokia needs a user: give --jolokia-user")
        if self.key and not self.certificate:
            raise AccessError("a key needs its certificate: give --jolokia-cert with --jolokia-key")
        if (self.target_user or self.target_password) and not self.target:
            raise AccessError("a user of the node's JMX needs the node: give --jolokia-target")
        if self.target_password and not self.target_user:
            raise AccessError("a password of the node's JMX needs a user: give --jolokia-target-user")
        if self.target:
            service_url(self.target)

    @property
    def headers(self) -> Mapping[str, str]:
        """The HTTP headers that tell who asks."""
        return {"Authorization": f"Basic {self._token}"} if self.user else {}

    @property
    def _token(self) -> str:
        return b64encode(f"{self.user}:{self.password}".encode()).decode()

    def hide(self, text: str) -> str:
        """Return what another program said without the secrets, should it repeat them."""
        for secret in (self.user and self._token, self.password, self.target_password):
            text = text.replace(secret, HIDDEN) if secret else text
        return text


NO_ACCESS = Access()
"""For a Jolokia that lets everybody in."""


def service_url(target: str) -> str:
    """Return the JMX service URL of `target`: HOST, HOST:PORT, or one already. Raises AccessError."""
    if "@" in target:
        raise AccessError("--jolokia-target holds no user and password: give --jolokia-target-user")
    if _SERVICE_URL.fullmatch(target):
        return target
    match = _HOST_PORT.fullmatch(target)
    port = int(match["port"] or JMX_PORT) if match else 0
    if match is None or not 0 < port < 1 << 16:
        raise AccessError("--jolokia-target is no node's JMX: one looks like 10.0.0.7:7199")
    return f"service:jmx:rmi:///jndi/rmi://{match['host']}:{port}/jmxrmi"
