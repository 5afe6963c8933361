"""Transports to the node (Jolokia or nodetool), as configured or detected."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from cli.errors import note
from cli.line.line_settings import LineSettings
from cli.line.node_selection import (
    NodesHere,
    jmx_port,
    jolokia_url,
    listed,
    nodes_here,
    nodetool_for,
    nodetool_path,
    peer_check,
    selected_node,
)
from cli.parameters.jolokia_options import connect
from collector.model.clock import Clock
from collector.model.snapshot import SourceError
from collector.node.catalogue import BEANS, REPORTS
from collector.node.host.cassandra_processes import LocalNode, NodeFacts, local_pid
from collector.node.jolokia.mbean_source import MBeanSource
from collector.node.sampling.node_sampler import NodeSampler, Transport
from collector.node.selection import Selection
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
    here = nodes_here(settings)
    node = selected_node(settings, here.nodes)
    _report_selection(settings, here, report)
    if settings.source != "nodetool" and (url := jolokia_url(settings, node, here.nodes)):
        jolokia = connect(url, settings.jolokia, check_peer=peer_check(settings, node, here.users))

        def pid_of(facts: NodeFacts) -> int | None:
            now = nodes_here(settings)
            # A node whose address is named may be another user's; one that is detected may not.
            return local_pid(facts, now.nodes, now.others if settings.jolokia.jolokia else ())

        yield "jolokia", lambda selection, clock: MBeanSource(jolokia, BEANS, selection, clock, pid_of)
    if settings.source == "jolokia" or (settings.source == "auto" and settings.jolokia.jolokia):
        return
    program = nodetool_path(settings, node)
    if program is not None:
        yield "nodetool", _nodetool_transport(program, settings, node, here)
    elif settings.source == "nodetool":
        raise NoTransportError("nodetool not found in PATH or next to Cassandra's jars (hint: use --nodetool PATH)")


def _report_selection(settings: LineSettings, here: NodesHere, report: Callable[[str], None]) -> None:
    if settings.jolokia.jolokia:
        return
    is_selected = settings.jmx_port is not None and selected_node(settings, here.nodes) is not None
    if not is_selected and (message := here.untrusted_message()):
        report(message)
    if len(here.nodes) < 2 or settings.jmx_port is not None:
        return
    selected = f"sampling {here.nodes[0].described()}"
    others = listed(here.nodes[1:])
    report(f"{selected}; other nodes on this machine: {others} (hint: use --jmx-port to select one)")


def _nodetool_transport(
    program: Path, settings: LineSettings, node: LocalNode | None, here: NodesHere
) -> TransportFactory:
    port = jmx_port(settings, node)

    def find() -> LocalNode | None:
        return next((now for now in nodes_here(settings).nodes if port is None or now.jmx_port == port), None)

    def make(selection: Selection, clock: Clock) -> Transport:
        if settings.jmx_password_file and is_read_by_others(settings.jmx_password_file):
            # nodetool's password file may predate casstat, so wrong permissions only cause a warning.
            path = settings.jmx_password_file
            note(f"{path}: accessible to other users (hint: run 'chmod 600 {path}')")
        # Imported here because this module is slow to import and rarely needed.
        from collector.node.nodetool.nodetool_source import NodetoolSource

        return NodetoolSource(nodetool_for(settings, program, node, here.users), selection, clock, find, REPORTS)

    return make
