"""Parses the URL of a sink: the store's address and its parameters; secrets come from files."""

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from collector.file_access import SecretError, read_password
from collector.printable import one_line
from exporters.sinks.sink import SinkUrlError

# The parameters of sinks that push the series of /metrics.
TOKEN, BASIC, LABELS, INTERVAL = PAGE_PARAMETERS = ("token_file", "basic_auth_file", "labels", "interval_s")
JOB, DEFAULT_JOB = "job", "casstat"
LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
RESERVED = "__"
MAX_INTERVAL_S = 3600

Secrets = tuple[str, ...]


@dataclass(frozen=True)
class Target:
    """A parsed sink URL.

    scheme      the sink's URL scheme, such as `influxdb+https`.
    path        the path without its leading slash, unescaped.
    parameters  the query parameters.
    """

    scheme: str
    host: str
    port: int | None
    path: str
    parameters: Mapping[str, str]

    @property
    def name(self) -> str:
        """The name in logs, metrics and files, without parameters, which may be private."""
        return f"{self.scheme}://{self._host_port}{'/' if self.path else ''}{self.path}"

    @property
    def address(self) -> str:
        """The base URL of a store that uses HTTP."""
        return f"{self.scheme.rpartition('+')[2]}://{self._host_port}"

    @property
    def tls(self) -> bool:
        return self.scheme.endswith("+https")

    def require_known(self, *known: str) -> None:
        """Raise SinkUrlError if the URL has a parameter that is not in `known`."""
        for name in self.parameters:
            if name not in known:
                near = get_close_matches(name, known, 1, 0.0)
                hint = f"did you mean {near[0]}?" if near else "remove it; this sink takes no parameters"
                raise SinkUrlError(f"{self.name}: unknown parameter {name!r} (hint: {hint})")

    def flag(self, name: str) -> bool:
        """Return whether a parameter is 1; the default is 0. Raises SinkUrlError for any other value."""
        value = self.parameters.get(name, "0")
        if value not in ("0", "1"):
            raise SinkUrlError(f"{self.name}: {name}={value}: must be 0 or 1")
        return value == "1"

    def secret(self, name: str) -> str:
        """Return the first line of the file that a parameter names; "" if it is not set. Raises SinkUrlError."""
        if name not in self.parameters:
            return ""
        try:
            return read_password(self.file(name))
        except SecretError as error:
            raise SinkUrlError(f"{self.name}: {name}: {error}") from None

    def file(self, name: str) -> Path:
        """Return the path in a parameter, with a leading `~` expanded."""
        return Path(self.parameters[name]).expanduser()

    @property
    def _host_port(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"


def parse_sink_url(url: str, schemes: Sequence[str]) -> Target:
    """Parse a URL. Raises SinkUrlError with a message that never quotes a secret from the URL."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise SinkUrlError("invalid sink URL (hint: use SCHEME://HOST:PORT/…)") from None
    if parts.scheme not in schemes:
        text = parts.scheme if parts.netloc and parts.scheme.replace("+", "").isalnum() else ""
        near = get_close_matches(text, schemes, 1)
        hint = (
            f"did you mean {near[0]}://?" if near else f"choose from {', '.join(f'{scheme}://' for scheme in schemes)}"
        )
        raise SinkUrlError(f"no sink for {text + '://' if text else 'this URL'} (hint: {hint})")
    if "@" in parts.netloc:
        raise SinkUrlError(
            f"{parts.scheme}://…: a user name and password in a URL are visible to other users "
            "(hint: remove them; for a store that requires a token, use token_file=PATH)"
        )
    if not parts.hostname or port == 0:
        raise SinkUrlError(f"{parts.scheme}://: no host or invalid port (hint: use {parts.scheme}://HOST:PORT/…)")
    try:
        parts.hostname.encode("idna")
    except UnicodeError:
        raise SinkUrlError(f"{parts.scheme}://{one_line(parts.hostname)}: invalid host name") from None
    parameters = parse_qsl(parts.query, keep_blank_values=True)
    if len(dict(parameters)) < len(parameters) or parts.fragment:
        raise SinkUrlError(
            f"{parts.scheme}://{parts.hostname}: duplicate parameter or '#' in the URL "
            "(hint: remove the duplicate, or escape '#' as %23)"
        )
    return Target(parts.scheme, parts.hostname, port, unquote(parts.path[1:]), dict(parameters))


def external_labels(target: Target) -> dict[str, str]:
    """Return the labels in the parameter `labels`, NAME:VALUE,NAME:VALUE, and the job. Raises SinkUrlError."""
    labels = {JOB: DEFAULT_JOB}
    for word in filter(None, target.parameters.get(LABELS, "").split(",")):
        name, separator, value = word.partition(":")
        if not separator or not LABEL_NAME.fullmatch(name) or name.startswith(RESERVED):
            raise SinkUrlError(f"{target.name}: labels={one_line(word)}: must be NAME:VALUE (hint: labels=env:prod)")
        labels[name] = value
    return labels


def interval_s(target: Target) -> float:
    """Return the interval at which ticks are sent; 0 for every tick. Raises SinkUrlError."""
    return float(number(target, INTERVAL, 0, MAX_INTERVAL_S))


def number(target: Target, name: str, minimum: int, maximum: int) -> int:
    """Return a parameter's value, or `minimum` if it is not given. Raises SinkUrlError."""
    text = target.parameters.get(name, str(minimum))
    if not (text.isascii() and text.isdigit() and minimum <= int(text[:9]) <= maximum):
        raise SinkUrlError(f"{target.name}: {name}={one_line(text)}: must be a number from {minimum} to {maximum}")
    return int(text)


def authorization(target: Target) -> tuple[Secrets, dict[str, str]]:
    """Return the header with the credentials, and the texts that must not appear in messages. Raises SinkUrlError."""
    if {TOKEN, BASIC} <= target.parameters.keys():
        raise SinkUrlError(f"{target.name}: {TOKEN} and {BASIC} exclude each other")
    if token := target.secret(TOKEN):
        return (token,), {"Authorization": f"Bearer {token}"}
    if secret := target.secret(BASIC):
        encoded = base64.b64encode(secret.encode()).decode()
        return (encoded, secret, secret.partition(":")[2]), {"Authorization": f"Basic {encoded}"}
    return (), {}
