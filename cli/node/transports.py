"""The ways to the node: its Jolokia, or nodetool; found by themselves, or as the user said."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from cli.errors import note
from cli.line.line_settings import LineSettings
from cli.node.node_selection import chosen, jmx_port, jolokia_url, nodetool
from cli.parameters.jolokia_options import connect
from collector.catalogue import BEANS
from collector.host.cassandra_processes import LocalNode, local_nodes
from collector.jolokia.mbean_source import MBeanSource
from collector.model.clock import Clock
from collector.model.snapshot import SourceError
from collector.nodetool.runner import Connection, Nodetool
from collector.sampling.node_sampler import NodeSampler, Transport
from collector.sampling.selection import Selection
from collector.secrets import is_read_by_others

Way = Callable[[Selection, Clock], Transport]
"""Makes the node that asks for what is selected."""

# A JVM starts for every report of nodetool, and perhaps on a busy machine.
START_TIMEOUT_S = {"jolokia": 3.0, "nodetool": 20.0}


@dataclass(frozen=True)
class Contact:
    """The watch of a node by the first way that answers, else by the first there is.

    failed  why those before it, or all of them, did not answer.
    """

    kind: str
    watch: NodeSampler
    answered: bool
    failed: tuple[str, ...]


def contact(found: Iterable[tuple[str, Way]], watch_of: Callable[[str, Way], NodeSampler]) -> Contact:
    """Ask the node about itself by one way after the other; `watch_of` makes the watch by a way of this kind.

    Raises click.UsageError when there is no way at all.
    """
    failed: list[tuple[str, NodeSampler, str]] = []
    for kind, way in found:
        watch = watch_of(kind, way)
        try:
            watch.learn(START_TIMEOUT_S[kind])
        except SourceError as error:
            failed.append((kind, watch, str(error)))
            continue
        for _, other, _ in failed:
            other.close()
        return Contact(kind, watch, answered=True, failed=tuple(reason for _, _, reason in failed))
    if not failed:
        raise click.UsageError("no Jolokia is known and no nodetool found: give --jolokia URL or --nodetool PATH")
    kind, watch, _ = failed[0]
    for _, other, _ in failed[1:]:
        other.close()
    return Contact(kind, watch, answered=False, failed=tuple(reason for _, _, reason in failed))


def ways(settings: LineSettings, say: Callable[[str], None] = note) -> Iterator[tuple[str, Way]]:
    """Yield the ways to try, the best first, each with its kind; `say` tells which of several nodes it is.

    Raises click.UsageError when one that was asked for by name cannot be had.
    """
    here = local_nodes()
    node = chosen(settings, here)
    _say_which(settings, here, say)
    if settings.source != "nodetool" and (url := jolokia_url(settings, node, here)):
        jolokia = connect(url, settings.jolokia)
        yield "jolokia", lambda selection, clock: MBeanSource(jolokia, BEANS, selection, clock)
    if settings.source == "jolokia" or (settings.source == "auto" and settings.jolokia.jolokia):
        return
    program = nodetool(settings, node)
    if program is not None:
        yield "nodetool", _through_nodetool(program, settings, jmx_port(settings, node))
    elif settings.source == "nodetool":
        raise click.UsageError("no nodetool found on the PATH or beside the node's jars: give --nodetool PATH")


def _say_which(settings: LineSettings, here: Sequence[LocalNode], say: Callable[[str], None]) -> None:
    """Where several nodes run here and none was chosen, say which one is watched."""
    if len(here) < 2 or settings.jmx_port is not None or settings.jolokia.jolokia:
        return
    others = [f"JMX port {node.jmx_port}" if node.jmx_port else f"process {node.pid}" for node in here[1:]]
    say(f"watching process {here[0].pid}; also on this machine: {', '.join(others)} (choose with -m PORT)")


def _through_nodetool(program: Path, settings: LineSettings, port: int | None) -> Way:
    def find() -> LocalNode | None:
        return next((node for node in local_nodes() if port is None or node.jmx_port == port), None)

    def make(selection: Selection, clock: Clock) -> Transport:
        if settings.jmx_password_file and is_read_by_others(settings.jmx_password_file):
            # It is nodetool's own, and may have been there before us: said, not refused.
            note(f"{settings.jmx_password_file}: can be read by others: chmod 600 {settings.jmx_password_file}")
        # Only where it is wanted: it brings a good deal along.
        from collector.nodetool.nodetool_source import NodetoolSource

        connection = Connection(port, settings.jmx_user, settings.jmx_password_file)
        return NodetoolSource(Nodetool(program, connection, os.environ), selection, clock, find)

    return make
