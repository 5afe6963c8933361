"""Which node of this machine is meant, and where it can be asked: as the options say, else as found."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from cli.line.line_settings import LineSettings
from collector.host.cassandra_processes import DEFAULT_URL, LocalNode


def chosen(settings: LineSettings, here: Sequence[LocalNode]) -> LocalNode | None:
    """Return which of this machine's nodes is meant, None when it is not among them."""
    if settings.jmx_port is not None:
        return next((node for node in here if node.jmx_port == settings.jmx_port), None)
    return here[0] if here and not settings.jolokia.jolokia else None


def jolokia_url(settings: LineSettings, node: LocalNode | None, here: Sequence[LocalNode]) -> str:
    """Return where the Jolokia of the chosen node may answer, "" when that could only be another node's."""
    if settings.jolokia.jolokia:
        return settings.jolokia.jolokia
    if node and node.url:
        return node.url
    # An agent that was attached later does not stand in a command line.
    others = [other for other in here if other != node]
    return "" if settings.jmx_port is not None and others else DEFAULT_URL


def nodetool(settings: LineSettings, node: LocalNode | None, path: str | None = None) -> Path | None:
    """Return the nodetool to ask with: the one given, the node's own, or one on the `path` (None: this process')."""
    if settings.nodetool or (node and node.nodetool):
        return settings.nodetool or (node.nodetool if node else None)
    found = shutil.which("nodetool", path=path)
    return Path(found) if found else None


def jmx_port(settings: LineSettings, node: LocalNode | None) -> int | None:
    """Return where the node's JMX answers, None for nodetool's own choice."""
    return settings.jmx_port or (node.jmx_port if node else None)
