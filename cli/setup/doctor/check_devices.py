"""Checks whether the disk and the network interface that casstat samples are known, ambiguous or missing."""

from collections.abc import Callable, Iterable, Sequence

from cli.setup.doctor.examined_node import ExaminedNode
from cli.setup.doctor.finding import Finding, alternatives, ok, problem, warning
from collector.model.snapshot import SourceError
from collector.node.host.discovery import default_interfaces, disk_of, interface_with
from collector.node.host.disk import parse as parse_disks
from collector.node.host.kernel_files import Host, read_text
from collector.node.host.network import parse_dev
from collector.node.node_sampler import UNKNOWN

DISK, INTERFACE = "disk", "interface"
# Prefixes of the names of block devices that are unlikely to hold Cassandra's data.
NO_DISKS = ("loop", "ram", "zram", "sr", "fd")
LOOPBACK = "lo"


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
