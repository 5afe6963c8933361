"""Selects a node on this machine and its Jolokia URL, nodetool and JMX port; options take precedence over detection."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from cli.line.line_settings import LineSettings
from collector.host.cassandra_processes import DEFAULT_URL, LocalNode


def selected_node(settings: LineSettings, local_nodes: Sequence[LocalNode]) -> LocalNode | None:
    """Return the local Cassandra process that the settings select.

    Returns None if no process matches, or if the settings contain a Jolokia URL but no JMX port.
    """
    if settings.jmx_port is not None:
        return next((node for node in local_nodes if node.jmx_port == settings.jmx_port), None)
    return local_nodes[0] if local_nodes and not settings.jolokia.jolokia else None


def jolokia_url(settings: LineSettings, node: LocalNode | None, local_nodes: Sequence[LocalNode]) -> str:
    """Return the Jolokia URL to try for the selected node.

    Returns "" if the node's own URL is unknown and the default URL may be another node's.
    """
    if settings.jolokia.jolokia:
        return settings.jolokia.jolokia
    if node and node.url:
        return node.url
    # An agent attached at run time does not appear in the process's command line, so try the default URL unless it may
    # be another node's.
    other_nodes = [local_node for local_node in local_nodes if local_node != node]
    return "" if settings.jmx_port is not None and other_nodes else DEFAULT_URL


def nodetool_path(settings: LineSettings, node: LocalNode | None, search_path: str | None = None) -> Path | None:
    """Return the nodetool to run: the configured one, else the node's, else one in `search_path` (default: $PATH).

    Returns None if there is no nodetool.
    """
    if settings.nodetool or (node and node.nodetool):
        return settings.nodetool or (node.nodetool if node else None)
    program = shutil.which("nodetool", path=search_path)
    return Path(program) if program else None


def jmx_port(settings: LineSettings, node: LocalNode | None) -> int | None:
    """Return the node's JMX port, or None to use nodetool's default."""
    return settings.jmx_port or (node.jmx_port if node else None)
