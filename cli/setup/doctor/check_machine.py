"""Checks the machine: the disk and the interface that casstat samples, and every source, which is read once."""

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from cli.setup.doctor.examined_node import ExaminedNode, Finding, alternatives, ok, problem, warning
from collector.model.clock import Clock
from collector.model.snapshot import SourceError
from collector.node.catalogue import HOST
from collector.node.host.cassandra_processes import NodeFacts
from collector.node.host.discovery import default_interfaces, disk_of, interface_with
from collector.node.host.disk import parse as parse_disks
from collector.node.host.host_source import HostSource, HostSubject
from collector.node.host.kernel_files import Host, read_text
from collector.node.host.network import parse_dev
from collector.node.node_sampler import UNKNOWN, NameOverrides, NodeSampler
from collector.node.selection import Selection, Table

SUBJECT = "machine"
# The summary and the fix for a source that provides no values, keyed by the source's name.
EMPTY = {
    "pressure": (
        "the kernel provides no pressure stall information",
        "add psi=1 to the kernel's command line, and reboot",
    ),
}
DISK, INTERFACE = "disk", "interface"
# Prefixes of the names of block devices that are unlikely to hold Cassandra's data.
NO_DISKS = ("loop", "ram", "zram", "sr", "fd")
LOOPBACK = "lo"
# Sources that another check covers.
OTHER_CHECKS = ("disk",)
# Sources that are empty if there is no Cassandra process; another check reports that.
OF_THE_PROCESS = ("cgroup", "process")


class KnownNode:
    """A stand-in for a transport to the node; it provides facts that have already been read."""

    kind = "known"
    paced = False
    sources = ()
    members: frozenset[str] = frozenset()

    def __init__(self, facts: NodeFacts, host: str) -> None:
        self._facts = facts
        self.host = host

    def learn(self, timeout_s: float) -> NodeFacts:
        """Return the known facts."""
        del timeout_s
        return self._facts

    def peers(self, timeout_s: float) -> tuple[str, ...]:
        del timeout_s
        return self._facts.peers

    def provides(self, metric: str) -> bool:
        """Return False, because this transport reads no metrics."""
        del metric
        return False

    def tables(self) -> Collection[Table]:
        """Return no tables, because this transport reads no metrics."""
        return ()

    def close(self) -> None:
        """Do nothing, because no connection is open."""


def host_of(facts: NodeFacts, given: NameOverrides, clock: Clock, root: Path = Path("/")) -> Host | None:
    """Return the process, disk and interface that casstat samples, or None for a node on another host."""
    is_local = facts.is_local or not facts.jvm
    node = KnownNode(facts, "127.0.0.1" if is_local else "")
    sampler = NodeSampler(node, Selection(frozenset()), given, clock, root)
    if facts.jvm:
        sampler.learn()
    return sampler.host if is_local else None


def examine(host: Host, clock: Clock, parts: Iterable[HostSubject] = HOST) -> list[Finding]:
    """Read every source once and return the findings; all sources that return values share one finding."""
    readable, findings = [], []
    for part in parts:
        try:
            values = HostSource(part, lambda: host, clock).read(1.0).values
        except SourceError as error:
            findings.append(problem(SUBJECT, f"{part.name}: {error}", f"no data for {_columns(part)}"))
            continue
        if values:
            readable.append(part.name)
        elif part.name not in OTHER_CHECKS and (host.pid is not None or part.name not in OF_THE_PROCESS):
            summary, fix = EMPTY.get(part.name, ("no values", ""))
            fixes = [fix] if fix else []
            findings.append(warning(SUBJECT, f"{part.name}: {summary}", f"no data for {_columns(part)}", *fixes))
    return [ok(SUBJECT, f"readable: {', '.join(readable)}"), *findings] if readable else findings


def _columns(part: HostSubject) -> str:
    headers = [column.header for metric in part.metrics for column in metric.columns]
    names = [metric.name for metric in part.metrics]
    return ", ".join(headers) or ", ".join(names[:2]) + (" …" if len(names) > 2 else "")


def disk(case: ExaminedNode, host: Host) -> Finding:
    """Return the finding about the disk that the columns show."""
    devices = _names(lambda: parse_disks(read_text(host.proc / "diskstats"), ()))
    if (selected := case.settings.disk) is not None:
        return _selected(DISK, case, "disk", selected.removeprefix("/dev/"), devices)
    disks = {str(directory): disk_of(directory, host.process_dir, host.root) for directory in host.directories}
    if host.disk == UNKNOWN:
        return _unknown(case, host, devices)
    locations = [f"{directory} on {name or 'an unknown device'}" for directory, name in disks.items()]
    if not all(disks.values()):
        return warning(
            DISK,
            f"data on several devices: {', '.join(locations)}",
            f"the columns show only {host.disk}",
            *_alternatives(case, "disk", host.disks),
        )
    if len(host.disks) > 1:
        return ok(DISK, f"{host.disk}, as sums and the utilisation of the busiest: {', '.join(locations)}")
    return ok(DISK, f"{host.disk}, which holds {', '.join(disks)}")


def _unknown(case: ExaminedNode, host: Host, devices: Sequence[str]) -> Finding:
    summary = f"no block device for {host.directories[0]} (it may be on a tmpfs, or on a network or pooled file system)"
    disks = [name for name in devices if not name.startswith(NO_DISKS)]
    # Omit partitions: their names begin with the disk's name.
    whole_disks = [name for name in disks if not any(name != disk and name.startswith(disk) for disk in disks)]
    return warning(DISK, summary, "the disk columns show '-'", *_alternatives(case, "disk", whole_disks))


def interface(case: ExaminedNode, host: Host, address: str) -> Finding:
    """Return the finding about the network interface that the columns show; `address` is the node's address."""
    interfaces = _names(lambda: parse_dev(read_text(host.network_dir / "dev"), ()))
    if (selected := case.settings.net_interface) is not None:
        return _selected(INTERFACE, case, "net_interface", selected, interfaces)
    shown = host.interfaces[0]
    candidates = [name for name in interfaces if name != LOOPBACK]
    if shown == UNKNOWN:
        summary = "no interface has the node's address, and there is no default route"
        impact = "the network columns show '-'"
        return warning(INTERFACE, summary, impact, *_alternatives(case, "net_interface", candidates))
    if address and interface_with(address) == shown:
        return ok(INTERFACE, f"{shown}, which has {address}")
    routes = default_interfaces(host.network_dir)
    summary = f"{shown}, the interface of the default route"
    if len(routes) > 1:
        summary = f"default routes through {', '.join(routes)}: showing {shown}"
        return warning(INTERFACE, summary, "", *_alternatives(case, "net_interface", routes))
    if address:
        summary = f"{summary}: no interface has {address}"
        impact = "the node may use another interface"
        return warning(INTERFACE, summary, impact, *_alternatives(case, "net_interface", candidates))
    return ok(INTERFACE, summary)


def _selected(subject: str, case: ExaminedNode, option: str, selected: str, names: Sequence[str]) -> Finding:
    if selected in names:
        return ok(subject, f"{selected}, as given")
    candidates = [name for name in names if not name.startswith(NO_DISKS) and name != LOOPBACK] or names
    return problem(subject, f"no {subject} '{selected}' on this host", "", *_alternatives(case, option, candidates))


def _alternatives(case: ExaminedNode, option: str, names: Iterable[str]) -> tuple[str, ...]:
    return alternatives(case.advice.line(**{option: name}) for name in names)


def _names(read: Callable[[], Iterable[tuple[str, ...]]]) -> list[str]:
    try:
        return list(dict.fromkeys(series[1] for series in read() if len(series) > 1))
    except (SourceError, IndexError, ValueError):
        return []
