"""Parses addresses of the form `ssh://[USER@]HOST[:PORT]`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from collector.printable import one_line

SCHEME = "ssh://"
SSH_PORT = 22
MAX_PORT = 65535
EXAMPLES = "use an address such as ssh://10.0.0.7, ssh://cassandra@db1 or ssh://[fd00::7]:2222"
# ssh's configuration may insert names into shell commands; a name that begins with '-' would be an option.
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}"
_PATTERN = re.compile(
    rf"ssh://(?:(?P<user>{_NAME})@)?"
    rf"(?:\[(?P<six>[0-9A-Fa-f:.]{{2,45}}(?:%[A-Za-z0-9_.-]{{1,15}})?)\]|(?P<host>{_NAME}))"
    r"(?::(?P<port>[0-9]{1,5}))?/?"
)


class SshAddressError(ValueError):
    """An address is invalid; the message is a single line."""


@dataclass(frozen=True)
class SshAddress:
    """A host to reach through ssh; ssh's configuration determines `user` and `port` if they are not set."""

    host: str
    user: str = ""
    port: int | None = None

    @property
    def url(self) -> str:
        """The address in the form ssh://USER@HOST:PORT, without the parts that are not set."""
        user = f"{self.user}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{SCHEME}{user}{host}" + ("" if self.port is None else f":{self.port}")

    def words(self) -> Iterator[str]:
        """Yield the options and the destination for ssh's command line."""
        if self.user:
            yield from ("-l", self.user)
        if self.port is not None:
            yield from ("-p", str(self.port))
        yield from ("--", self.host)

    def command_line(self, command: str = "") -> str:
        """Return the ssh command line that runs `command` at this address, for display to the user."""
        port = "" if self.port is None else f"-p {self.port} "
        user = f"{self.user}@" if self.user else ""
        return f"ssh {port}{user}{self.host} {command}".rstrip()


def is_ssh(text: str) -> bool:
    """Return whether `text` begins with the scheme `ssh://`."""
    return text.startswith(SCHEME)


def parse_ssh_address(text: str) -> SshAddress:
    """Parse an address. Raises SshAddressError."""
    if ":" in text.removeprefix(SCHEME).rpartition("@")[0]:
        raise SshAddressError("an SSH address must not contain a password (hint: use a key)")
    match = _PATTERN.fullmatch(text)
    port = int(match["port"]) if match and match["port"] else None
    if match is None or (port is not None and not 0 < port <= MAX_PORT):
        raise SshAddressError(f"'{one_line(text)}' is not a valid address (hint: {EXAMPLES})")
    return SshAddress(match["six"] or match["host"], match["user"] or "", port)


def labels_of(addresses: Sequence[SshAddress]) -> list[str]:
    """Return a label for each address: its host, with a number if the host occurs several times."""
    hosts = [address.host for address in addresses]
    labels = []
    for index, host in enumerate(hosts):
        number = f"#{hosts[:index].count(host) + 1}" if hosts.count(host) > 1 else ""
        labels.append(host + number)
    return labels
