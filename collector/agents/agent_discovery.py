"""Finds the agents of a cluster: in a file of Prometheus' file_sd format, or as the addresses of a name."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from collector.agents.node_address import AGENT_PORT
from collector.printable import one_line

MAX_BYTES = 1 << 22
# The depth of a YAML file; the time that scanning takes grows with its square.
MAX_DEPTH = 100


class DiscoveryError(Exception):
    """Agents cannot be found. The message is one line: where, cause and possibly a hint."""


def file_addresses(path: Path) -> list[str]:
    """Return the addresses in a file: a JSON or YAML list of groups, each with a list of `targets` (HOST:PORT).

    A group's label `__scheme__` may be https; other labels are ignored. Raises DiscoveryError.
    """
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise DiscoveryError(f"{path}: {error.strerror}") from None
    if len(text) > MAX_BYTES:
        raise DiscoveryError(f"{path}: larger than {MAX_BYTES} bytes")
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
