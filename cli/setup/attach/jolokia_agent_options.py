"""The attached Jolokia agent's options: address, credentials, and a read-only policy."""

import ipaddress
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cli.errors import CasstatError
from cli.jolokia_policy import FILE

# Disables multicast discovery, and also proxy mode, which Jolokia 2 enables by default.
QUIET = {
    "discoveryEnabled": "false",
    "disabledServices": "org.jolokia.service.jsr160.Jsr160RequestHandler",
}


@dataclass(frozen=True)
class Agent:
    """The agent's address and credentials; without a user, it accepts every client."""

    host: str
    port: int
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def url(self) -> str:
        """The agent's URL on this host."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/jolokia"

    @property
    def is_private(self) -> bool:
        """Whether only this host can reach the agent."""
        return ipaddress.ip_address(self.host).is_loopback


@contextmanager
def options_file(agent: Agent, pid: int, owner: tuple[int, int]) -> Iterator[Path]:
    """Write the agent's options and policy to files that only the process's user can read; remove them after the block.

    Yields the path of the options file as the process sees it. The options are not passed on the command line, where
    every user could read the password. Raises CasstatError.
    """
    name = f"casstat-{secrets.token_hex(8)}"
    inside, folder = Path("/tmp", name), Path("/proc", str(pid), "root", "tmp", name)  # noqa: S108 - unpredictable name
    texts = {"policy.xml": FILE.read_text(), "agent.properties": _properties(agent, inside / "policy.xml")}
    try:
        _write(folder, {name: text.encode() for name, text in texts.items()}, owner)
        yield inside / "agent.properties"
    finally:
        # If the process has ended, its /proc entry is gone, but a /tmp shared with it still contains the files.
        with _as_user(owner):
            for path in (folder, inside):
                shutil.rmtree(path, ignore_errors=True)


def _write(folder: Path, contents: Mapping[str, bytes], owner: tuple[int, int]) -> None:
    try:
        # Write as the process's user, who may own this /tmp: a symbolic link must not make root write elsewhere.
        with _as_user(owner):
            folder.mkdir(0o700)
            for name, content in contents.items():
                (folder / name).touch(0o600)
                (folder / name).write_bytes(content)
    except OSError as error:
        raise CasstatError(f"cannot write Jolokia's options to the node's /tmp: {error.strerror}") from None


@contextmanager
def _as_user(owner: tuple[int, int]) -> Iterator[None]:
    """Run the block as another user if this process is root.

    The block must not import modules, because that user may not be able to read them.
    """
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
    """Return a value with all characters escaped for a Java properties file."""
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
