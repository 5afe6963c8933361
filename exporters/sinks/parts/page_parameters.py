"""URL parameters of sinks that push the series of /metrics: labels, interval and credentials."""

import base64
import re

from collector.printable import one_line
from exporters.sinks.parts.sink_url import Target
from exporters.sinks.sink import SinkUrlError

TOKEN, BASIC, LABELS, INTERVAL = PAGE_PARAMETERS = ("token_file", "basic_auth_file", "labels", "interval_s")
JOB, DEFAULT_JOB = "job", "casstat"
LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
RESERVED = "__"
MAX_INTERVAL_S = 3600

Secrets = tuple[str, ...]


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
