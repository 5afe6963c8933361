"""The ways to the node: its Jolokia, or nodetool; found by themselves, or as the user said."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from cli.access import connect
from cli.main import note
from cli.settings import LineSettings
from collector.catalogue import BEANS
from collector.clock import Clock
from collector.jmx import NodeSource
from collector.local import DEFAULT_URL, LocalNode, local_nodes
from collector.nodetool import Connection, Nodetool
from collector.secrets import is_read_by_others
from collector.selection import Selection
from collector.watch import Node

Way = Callable[[Selection, Clock], Node]
"""Makes the node that asks for what is selected."""


def ways(settings: LineSettings) -> Iterator[tuple[str, Way]]:
    """Yield the ways to try, the best first, each with its kind.

    Raises click.UsageError when one that was asked for by name cannot be had.
    """
    here = local_nodes()
    chosen = _chosen(settings, here)
    if settings.source != "nodetool" and (url := _url(settings, chosen, here)):
        jolokia = connect(url, settings.jolokia)
        yield "jolokia", lambda selection, clock: NodeSource(jolokia, BEANS, selection, clock)
    if settings.source == "jolokia" or (settings.source == "auto" and settings.jolokia.jolokia):
        return
    program = settings.nodetool or _nodetool(chosen)
    if program is not None:
        yield "nodetool", _through_nodetool(program, settings, chosen)
    elif settings.source == "nodetool":
        raise click.UsageError("no nodetool found on the PATH or beside the node's jars: give --nodetool PATH")


def _chosen(settings: LineSettings, here: list[LocalNode]) -> LocalNode | None:
    """Return which of this machine's nodes is meant, None when it is not among them."""
    if settings.jmx_port is not None:
        return next((node for node in here if node.jmx_port == settings.jmx_port), None)
    if settings.jolokia.jolokia or not here:
        return None
    if len(here) > 1:
        others = [f"JMX port {node.jmx_port}" if node.jmx_port else f"process {node.pid}" for node in here[1:]]
        note(f"watching process {here[0].pid}; also on this machine: {', '.join(others)} (choose with -m PORT)")
    return here[0]


def _url(settings: LineSettings, chosen: LocalNode | None, here: list[LocalNode]) -> str:
    """Return where Jolokia may answer, "" when that could only be another node's."""
    if settings.jolokia.jolokia:
        return settings.jolokia.jolokia
    if chosen and chosen.url:
        return chosen.url
    # An agent that was attached later does not stand in a command line.
    others = [node for node in here if node != chosen]
    return "" if settings.jmx_port is not None and others else DEFAULT_URL


def _nodetool(chosen: LocalNode | None) -> Path | None:
    if chosen and chosen.nodetool:
        return chosen.nodetool
    found = shutil.which("nodetool")
    return Path(found) if found else None


def _through_nodetool(program: Path, settings: LineSettings, chosen: LocalNode | None) -> Way:
    port = settings.jmx_port or (chosen.jmx_port if chosen else None)

    def find() -> LocalNode | None:
        return next((node for node in local_nodes() if port is None or node.jmx_port == port), None)

    def make(selection: Selection, clock: Clock) -> Node:
        if settings.jmx_password_file and is_read_by_others(settings.jmx_password_file):
            # It is nodetool's own, and may have been there before us: said, not refused.
            note(f"{settings.jmx_password_file}: can be read by others: chmod 600 {settings.jmx_password_file}")
        # Only where it is wanted: it brings a good deal along.
        from collector.tool import NodetoolNode

        connection = Connection(port, settings.jmx_user, settings.jmx_password_file)
        return NodetoolNode(Nodetool(program, connection, os.environ), selection, clock, find)

    return make
