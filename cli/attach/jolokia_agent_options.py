"""What Jolokia's agent is told when it is attached: where to listen, whom to let in, and to change nothing."""

import ipaddress
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cli.errors import CasstatError

# Reading and finding alone, and the one operation that casstat needs: it returns a histogram's bucket counts.
# Web pages that a browser shows on this machine learn nothing.
POLICY = """<?xml version="1.0" encoding="utf-8"?>
<restrict>
  <commands><command>read</command><command>search</command><command>version</command></commands>
  <allow><mbean><name>org.apache.cassandra.metrics:*</name><operation>values()</operation></mbean></allow>
  <cors><allow-origin>none.invalid</allow-origin></cors>
</restrict>
"""
# Nor does it reach out to others: to the network's Jolokias, or as a proxy (which version 2 is unless told not to be).
QUIET = {
    "discoveryEnabled": "false",
    "disabledServices": "org.jolokia.service.jsr160.Jsr160RequestHandler",
}


@dataclass(frozen=True)
class Agent:
    """Where the agent is to listen, and whom it lets in: anybody when there is no user."""

    host: str
    port: int
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def url(self) -> str:
        """Where it can be asked from this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/jolokia"

    @property
    def is_private(self) -> bool:
        """Whether nobody from elsewhere can reach it."""
        return ipaddress.ip_address(self.host).is_loopback


@contextmanager
def options_file(agent: Agent, pid: int, owner: tuple[int, int]) -> Iterator[Path]:
    """Write the agent's options where the process finds them, for its user alone, while the block runs.

    Yields the path as the process sees it. A command line would show the password to everybody.
    Raises CasstatError.
    """
    name = f"casstat-{secrets.token_hex(8)}"
    inside, folder = Path("/tmp", name), Path("/proc", str(pid), "root", "tmp", name)  # noqa: S108 - nobody foresees it
    texts = {"policy.xml": POLICY, "agent.properties": _properties(agent, inside / "policy.xml")}
    try:
        _write(folder, {name: text.encode() for name, text in texts.items()}, owner)
        yield inside / "agent.properties"
    finally:
        # Should the process have ended meanwhile, its /tmp may still be the one that is seen here.
        with _as_user(owner):
            for place in (folder, inside):
                shutil.rmtree(place, ignore_errors=True)


def _write(folder: Path, contents: Mapping[str, bytes], owner: tuple[int, int]) -> None:
    try:
        # Root has no more rights here than the process' user, whose /tmp this may be: no link leads it elsewhere.
        with _as_user(owner):
            folder.mkdir(0o700)
            for name, content in contents.items():
                (folder / name).touch(0o600)
                (folder / name).write_bytes(content)
    except OSError as error:
        raise CasstatError(f"the node's /tmp cannot hold what Jolokia is to be told: {error.strerror}") from None


@contextmanager
def _as_user(owner: tuple[int, int]) -> Iterator[None]:
    """Be another user while the block runs, where this is root; who may not even read Python's own modules."""
    if os.geteuid() != 0 or owner[0] == 0:
        yield
        return
    user, group, groups = os.geteuid(), os.getegid(), os.getgroups()
    os.setgroups([])
    os.setegid(owner[1])
    os.seteuid(owner[0])
    try:
        yield
    finally:
        os.seteuid(user)
        os.setegid(group)
        os.setgroups(groups)


def _properties(agent: Agent, policy: Path) -> str:
    options = {**QUIET, "policyLocation": f"file:{policy}"}
    if agent.user:
        options |= {"user": agent.user, "password": agent.password}
    return "".join(f"{name}={_escaped(value)}\n" for name, value in options.items())


def _escaped(text: str) -> str:
    """Return a value as Java's property files want it, whatever stands in it."""
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
