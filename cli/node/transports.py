"""Transports to the node (Jolokia or nodetool), as configured or detected."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from cli.errors import note
from cli.line.line_settings import LineSettings
from cli.node.node_selection import jmx_port, jolokia_url, nodetool_path, selected_node
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

TransportFactory = Callable[[Selection, Clock], Transport | None]
"""Creates a transport that reads a selection of metrics from the node; None if only the machine is sampled."""
HOST_ONLY = "host"
"""The source that contains only the machine's metrics."""

# nodetool gets more time because each of its reports starts a JVM, which is slow on a busy machine.
START_TIMEOUT_S = {"jolokia": 3.0, "nodetool": 20.0}


class NoTransportError(click.UsageError):
    """There is no transport to try."""


@dataclass(frozen=True)
class Contact:
    """A node sampler and its transport: the first transport over which the node answered, else the first candidate.

    failures  error messages of the transports that failed.
    """

    kind: str
    sampler: NodeSampler
    answered: bool
    failures: tuple[str, ...]


def first_contact(
    factories: Iterable[tuple[str, TransportFactory]], make_sampler: Callable[[str, TransportFactory], NodeSampler]
) -> Contact:
    """Try the transports in order until the node answers over one of them.

    `make_sampler` creates a sampler from a transport's kind and factory. Raises NoTransportError if there is no
    transport to try.
    """
    failed: list[tuple[str, NodeSampler, str]] = []
    for kind, factory in factories:
        sampler = make_sampler(kind, factory)
        if kind == HOST_ONLY:
            return Contact(kind, sampler, answered=False, failures=())
        try:
            sampler.learn(START_TIMEOUT_S[kind])
        except SourceError as error:
            failed.append((kind, sampler, str(error)))
            continue
        for _, failed_sampler, _ in failed:
            failed_sampler.close()
        return Contact(kind, sampler, answered=True, failures=tuple(reason for _, _, reason in failed))
    if not failed:
        raise NoTransportError(
            "no Jolokia agent detected, and no nodetool to run (hint: use --jolokia URL or --nodetool PATH)"
        )
    kind, sampler, _ = failed[0]
    for _, failed_sampler, _ in failed[1:]:
        failed_sampler.close()
    return Contact(kind, sampler, answered=False, failures=tuple(reason for _, _, reason in failed))


def transport_factories(
    settings: LineSettings, report: Callable[[str], None] = note
) -> Iterator[tuple[str, TransportFactory]]:
    """Yield the kind and factory of each transport to try, in order of preference.

    If several nodes run on this machine, a message to `report` names the selected one. Raises NoTransportError
    if nodetool is requested by an option and is not found.
    """
    if settings.source == HOST_ONLY:
        yield HOST_ONLY, lambda _selection, _clock: None
        return
    nodes_here = local_nodes()
    node = selected_node(settings, nodes_here)
    _report_selection(settings, nodes_here, report)
    if settings.source != "nodetool" and (url := jolokia_url(settings, node, nodes_here)):
        jolokia = connect(url, settings.jolokia)
        yield "jolokia", lambda selection, clock: MBeanSource(jolokia, BEANS, selection, clock)
    if settings.source == "jolokia" or (settings.source == "auto" and settings.jolokia.jolokia):
        return
    program = nodetool_path(settings, node)
    if program is not None:
        yield "nodetool", _nodetool_transport(program, settings, jmx_port(settings, node))
    elif settings.source == "nodetool":
        raise NoTransportError("nodetool not found in PATH or next to Cassandra's jars (hint: use --nodetool PATH)")


def _report_selection(settings: LineSettings, nodes_here: Sequence[LocalNode], report: Callable[[str], None]) -> None:
    if len(nodes_here) < 2 or settings.jmx_port is not None or settings.jolokia.jolokia:
        return
    others = [f"JMX port {node.jmx_port}" if node.jmx_port else f"process {node.pid}" for node in nodes_here[1:]]
    selected = f"sampling process {nodes_here[0].pid}"
    report(f"{selected}; other nodes on this machine: {', '.join(others)} (hint: use --jmx-port to select one)")


def _nodetool_transport(program: Path, settings: LineSettings, port: int | None) -> TransportFactory:
    def find() -> LocalNode | None:
        return next((node for node in local_nodes() if port is None or node.jmx_port == port), None)

    def make(selection: Selection, clock: Clock) -> Transport:
        if settings.jmx_password_file and is_read_by_others(settings.jmx_password_file):
            # nodetool's password file may predate casstat, so wrong permissions only cause a warning.
            path = settings.jmx_password_file
            note(f"{path}: accessible to other users (hint: run 'chmod 600 {path}')")
        # Imported here because this module is slow to import and rarely needed.
        from collector.nodetool.nodetool_source import NodetoolSource

        connection = Connection(port, settings.jmx_user, settings.jmx_password_file)
        tool = Nodetool(program, connection, os.environ, "use --nodetool PATH")
        return NodetoolSource(tool, selection, clock, find)

    return make
