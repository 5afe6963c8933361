"""A sink's URL taken apart: where the store is, and what else is said of it. Secrets come from files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from collector.secrets import SecretError, read_password
from exporters.sinks.sink import SinkUrlError

LARGEST_PORT = 65535


@dataclass(frozen=True)
class Target:
    """What a URL says.

    scheme  of the sink, such as `influxdb+https`.
    path    without the slash before it, its escapes undone.
    given   its parameters.
    """

    scheme: str
    host: str
    port: int | None
    path: str
    given: Mapping[str, str]

    @property
    def name(self) -> str:
        """What logs, metrics and files call it: no parameter of it is there, for these may be private."""
        return f"{self.scheme}://{self._place}{'/' if self.path else ''}{self.path}"

    @property
    def address(self) -> str:
        """The URL of the server itself, for stores that speak HTTP."""
        return f"{self.scheme.rpartition('+')[2]}://{self._place}"

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.scheme.endswith("+https")

    def only(self, *known: str) -> None:
        """Raise SinkUrlError for a parameter that is not among the known ones."""
        for name in self.given:
            if name not in known:
                near = get_close_matches(name, known, 1, 0.0)
                meant = f": is {near[0]} meant?" if near else ": it takes none"
                raise SinkUrlError(f"{self.name}: there is no parameter {name!r}{meant}")

    def flag(self, name: str) -> bool:
        """Return whether a parameter is 1; it is 0 when it is not given. Raises SinkUrlError."""
        value = self.given.get(name, "0")
        if value not in ("0", "1"):
            raise SinkUrlError(f"{self.name}: {name}={value}: it is 0 or 1")
        return value == "1"

    def secret(self, name: str) -> str:
        """Return what the file has in its first line that a parameter names; "" without one. Raises SinkUrlError."""
        if name not in self.given:
            return ""
        try:
            return read_password(self.file(name))
        except SecretError as error:
            raise SinkUrlError(f"{self.name}: {name}: {error}") from None

    def file(self, name: str) -> Path:
        """Return the path that a parameter names."""
        return Path(self.given[name]).expanduser()

    @property
    def _place(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"


def target_of(url: str, schemes: Sequence[str]) -> Target:
    """Return what a URL says. Raises SinkUrlError; its message has nothing of the URL that may be secret."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise SinkUrlError("a sink's URL that is none: it is SCHEME://HOST:PORT/…") from None
    if parts.scheme not in schemes:
        said = parts.scheme if parts.netloc and parts.scheme.replace("+", "").isalnum() else ""
        near = get_close_matches(said, schemes, 1)
        meant = f"is {near[0]}:// meant? " if near else ""
        raise SinkUrlError(
            f"there is no sink {said + '://' if said else 'of such a URL'}: {meant}there are {_list(schemes)}"
        )
    if "@" in parts.netloc:
        raise SinkUrlError(
            f"{parts.scheme}://…: no user and password in a URL: others can read it; use token_file=PATH"
        )
    if not parts.hostname or port == 0:
        raise SinkUrlError(f"{parts.scheme}://: the URL names no host, or no port: it is {parts.scheme}://HOST:PORT/…")
    given = parse_qsl(parts.query, keep_blank_values=True)
    if len(dict(given)) < len(given) or parts.fragment:
        raise SinkUrlError(f"{parts.scheme}://{parts.hostname}: a parameter that is there twice, or a '#'")
    return Target(parts.scheme, parts.hostname, port, unquote(parts.path[1:]), dict(given))


def _list(schemes: Sequence[str]) -> str:
    return ", ".join(f"{scheme}://" for scheme in schemes)
