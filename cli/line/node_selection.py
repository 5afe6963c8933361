"""Selects a node on this machine and its Jolokia URL, nodetool and JMX port; options take precedence over detection.

Any local user can imitate a node, so only processes and listeners of trusted users are used unless their address is
named (see `collector.node.host.trust`).
"""

import errno
import os
import pwd
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from cli.errors import note
from cli.parameters.access_options import JolokiaSettings, connect
from collector.file_access import is_read_by_others
from collector.http.access import CheckPeer
from collector.model.clock import Clock
from collector.model.snapshot import SourceError
from collector.node.catalogue import BEANS, REPORTS
from collector.node.host import cassandra_processes, trust
from collector.node.host.cassandra_processes import DEFAULT_URL, LocalNode, NodeFacts, local_nodes
from collector.node.jolokia.mbean_source import MBeanSource
from collector.node.node_sampler import NodeSampler, Transport
from collector.node.nodetool.runner import Connection, Nodetool, NodetoolStartError
from collector.node.selection import Selection
from collector.printable import names_text

DEFAULT_S = 1.0
"""Default interval between rows."""
JMX_HOST, JMX_PORT = "127.0.0.1", 7199
"""The address that nodetool connects to by default."""
MAX_LISTED = 5
HINT = "to read one, name its address with --jolokia or its user with --trusted-user"
PROGRAM_HINT = "make it writable only by root and Cassandra's user, or name another one with --nodetool"
TransportFactory = Callable[[Selection, Clock], Transport | None]
"""Creates a transport that reads a selection of metrics from the node; None if only the machine is sampled."""
HOST_ONLY = "host"
"""The source that contains only the machine's metrics."""
# nodetool gets more time because each of its reports starts a JVM, which is slow on a busy machine.
START_TIMEOUT_S = {"jolokia": 3.0, "nodetool": 20.0}


@dataclass(frozen=True)
class LineSettings:
    """The options of the default command; see `casstat --help`. Omitted options have their default values."""

    interval: float | None = None
    count: int | None = None
    interval_option: float | None = None
    count_option: int | None = None
    with_time: bool = False
    epoch: bool = False
    no_header: bool = False
    keyspace: str = ""
    table: str = ""
    percentiles: bool = False
    compactions: bool = False
    disk: str | None = None
    net_interface: str | None = None
    caches: bool = False
    read_repair: bool = False
    tables: int | None = None
    log: Path | None = None
    log_pattern: str = ""
    events: Path | None = None
    write: Path | None = None
    journal_limit: int | None = None
    journal_sync: str = "frame"
    source: str = "auto"
    nodetool: Path | None = None
    jmx_port: int | None = None
    jmx_user: str = ""
    jmx_password_file: Path | None = None
    wide: bool = False
    wait: bool = False
    columns: tuple[str, ...] = ()
    output: str = "text"
    jolokia: JolokiaSettings = field(default_factory=JolokiaSettings)
    node: str = ""


@dataclass(frozen=True)
class NodesHere:
    """The Cassandra processes on this machine: `nodes` of trusted users, `others` of all other users.

    users  UIDs of the trusted users.
    """

    nodes: tuple[LocalNode, ...] = ()
    others: tuple[LocalNode, ...] = ()
    users: frozenset[int] = frozenset()

    def untrusted_message(self) -> str:
        """Return a message that lists the processes of users that are not trusted; "" if there are none."""
        if not self.others:
            return ""
        return f"ignoring Cassandra processes of users that are not trusted: {listed(self.others)} (hint: {HINT})"


def listed(nodes: Sequence[LocalNode]) -> str:
    """Return a short list of processes and their users."""
    return names_text([node.described() for node in nodes], MAX_LISTED)


def users_of(settings: JolokiaSettings) -> frozenset[int]:
    """Return the UIDs of the trusted users. Raises click.UsageError if one of them does not exist."""
    try:
        return trust.trusted_users(settings.trusted_user)
    except trust.UnknownUserError as error:
        raise click.UsageError(f"--trusted-user: {error}") from None


def nodes_here(settings: LineSettings) -> NodesHere:
    """Return the Cassandra processes on this machine. Raises click.UsageError if a trusted user does not exist."""
    users = users_of(settings.jolokia)
    found = local_nodes()
    others = tuple(node for node in found if node.uid not in users)
    return NodesHere(tuple(cassandra_processes.trusted_nodes(found, users)), others, users)


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


def peer_check(settings: LineSettings, node: LocalNode | None, users: frozenset[int]) -> CheckPeer | None:
    """Return the check that a detected Jolokia is that of the node's user, or of a trusted user if there is no node.

    Returns None for a URL that the user has named.
    """
    if settings.jolokia.jolokia:
        return None
    owners = users if node is None else frozenset({node.uid})
    return lambda host, port: trust.listener_problem(host, port, owners)


def nodetool_path(settings: LineSettings, node: LocalNode | None, search_path: str | None = None) -> Path | None:
    """Return the nodetool to run: the configured one, else the node's, else one in `search_path` (default: $PATH).

    Returns None if there is no nodetool.
    """
    program = settings.nodetool or (node.nodetool if node else None) or shutil.which("nodetool", path=search_path)
    return Path(program) if program else None


def nodetool_user(
    settings: LineSettings, program: Path, node: LocalNode | None, users: frozenset[int]
) -> Callable[[], tuple[int, int] | None]:
    """Return a function to call before each run of nodetool.

    It returns the user and group to run nodetool as, or None for casstat's own, and raises SourceError if the listener
    on the JMX port, which receives the credentials, or the program is not to be trusted. The reply of a hostile
    listener could also make nodetool run code (Java's serialisation), so nodetool never runs as root for another user.
    """
    owners = users if node is None else frozenset({node.uid})
    port = jmx_port(settings, node) or JMX_PORT
    is_named = settings.nodetool is not None

    def check() -> tuple[int, int] | None:
        listening = trust.listening_users(JMX_HOST, port)
        if foreign := listening - owners:
            raise SourceError(
                f"JMX port {port} belongs to user {trust.user_names(foreign)}, not to {trust.user_names(owners)}"
                " (hint: to trust that user, use --trusted-user)"
            )
        # A named program may be a wrapper that reads a node elsewhere, such as one in a container.
        if not listening and (not is_named or settings.jmx_password_file):
            raise SourceError(f"connection refused: no process listens on JMX port {port}")
        user = node.uid if node else next(iter(listening), os.geteuid())
        if not program.exists():
            # Another user could create it between the examination and the start.
            raise NodetoolStartError(os.strerror(errno.ENOENT))
        if problem := _program_problem(program, node, user, is_named=is_named):
            raise SourceError(f"{program}: not run, because {problem} (hint: {PROGRAM_HINT})")
        return None if os.geteuid() != 0 or user == 0 else (user, _group(node, user))

    return check


def _program_problem(program: Path, node: LocalNode | None, user: int, *, is_named: bool) -> str:
    """Return why nodetool is not to be run; only root examines a program that the user has named or has in $PATH."""
    is_detected = not is_named and node is not None and program == node.nodetool
    if os.geteuid() != 0 and not is_detected:
        return ""
    files = [program.absolute(), *(node.nodetool_files() if node is not None and is_detected else ())]
    return trust.files_problem(files, {0, os.geteuid(), user})


def _group(node: LocalNode | None, user: int) -> int:
    if node is not None:
        return node.gid
    try:
        return pwd.getpwuid(user).pw_gid
    except KeyError:
        return user


def jmx_port(settings: LineSettings, node: LocalNode | None) -> int | None:
    """Return the node's JMX port, or None to use nodetool's default."""
    return settings.jmx_port or (node.jmx_port if node else None)


def nodetool_for(
    settings: LineSettings,
    program: Path,
    node: LocalNode | None,
    users: frozenset[int],
    environ: Mapping[str, str] = os.environ,
    hint: str = "use --nodetool PATH",
) -> Nodetool:
    """Return the program that reads the node; nothing is started yet. `hint` is for a program that does not start."""
    port = jmx_port(settings, node)
    if settings.nodetool is None or settings.jmx_password_file is not None:
        # Otherwise, nodetool could take another port from cassandra-env.sh, whose listener has not been checked.
        port = port or JMX_PORT
    connection = Connection(port, settings.jmx_user, settings.jmx_password_file)
    user = nodetool_user(settings, program, node, users)
    return Nodetool(program, connection, environ, hint, user)


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
            return cassandra_processes.local_pid(facts, now.nodes, now.others if settings.jolokia.jolokia else ())

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
