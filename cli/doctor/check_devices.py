"""The disk and the network interface that the line shows: found, ambiguous, or not there."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from cli.doctor.examined_node import ExaminedNode
from cli.doctor.finding import Finding, alternatives, ok, problem, warning
from collector.host.discovery import disk_of, interface_of
from collector.host.disk import parse as parse_disks
from collector.host.kernel_files import Host, read_text
from collector.host.network import parse_dev
from collector.model.snapshot import SourceError
from collector.sampling.node_sampler import UNKNOWN

DISK, INTERFACE = "disk", "interface"
# What reads and writes nothing that anybody waits for.
NO_DISKS = ("loop", "ram", "zram", "sr", "fd")
LOOPBACK = "lo"
DEFAULT = "00000000"
UP = 0x1


def disk(case: ExaminedNode, host: Host) -> Finding:
    """Return which disk is shown."""
    there = _names(lambda: parse_disks(read_text(host.proc / "diskstats"), ()))
    if (given := case.settings.disk) is not None:
        return _given(DISK, case, "disk", given.removeprefix("/dev/"), there)
    found = {str(each): disk_of(each, host.process_dir, host.root) for each in host.directories}
    shown = host.disks[0]
    others = [name for name in dict.fromkeys(found.values()) if name != shown]
    if shown == UNKNOWN:
        return _unknown(case, host, there)
    if not others:
        return ok(DISK, f"{shown}, under {', '.join(found)}")
    under = [f"{place} on {name or 'no disk'}" for place, name in found.items()]
    real = [name for name in [shown, *others] if name]
    return warning(
        DISK,
        f"data on several devices: {', '.join(under)}",
        f"the columns are those of {shown} alone",
        *_alternatives(case, "disk", real),
    )


def _unknown(case: ExaminedNode, host: Host, there: Sequence[str]) -> Finding:
    what = f"no block device under {host.directories[0]}, as with a tmpfs, a network's or a pool's file system"
    candidates = [name for name in there if not name.startswith(NO_DISKS)]
    whole = [name for name in candidates if not any(name != one and name.startswith(one) for one in candidates)]
    return warning(DISK, what, "its columns show '-'", *_alternatives(case, "disk", whole))


def interface(case: ExaminedNode, host: Host, address: str) -> Finding:
    """Return which network interface is shown, for a node that announces `address`."""
    there = _names(lambda: parse_dev(read_text(host.network_dir / "dev"), ()))
    if (given := case.settings.net_interface) is not None:
        return _given(INTERFACE, case, "net_interface", given, there)
    shown = host.interfaces[0]
    candidates = [name for name in there if name != LOOPBACK]
    if shown == UNKNOWN:
        what = "none has the node's address, and there is no default route"
        return warning(INTERFACE, what, "its columns show '-'", *_alternatives(case, "net_interface", candidates))
    if address and interface_of(address, Path("/nonexistent")) == shown:
        return ok(INTERFACE, f"{shown}, which has {address}")
    routes = default_routes(host.network_dir)
    which = f"{shown}, that of the default route"
    if len(routes) > 1:
        what = f"default routes through {', '.join(routes)}: {shown} is shown"
        return warning(INTERFACE, what, "", *_alternatives(case, "net_interface", routes))
    if address:
        why = "the node's traffic may pass through another"
        return warning(
            INTERFACE, f"{which}: none has {address}", why, *_alternatives(case, "net_interface", candidates)
        )
    return ok(INTERFACE, which)


def default_routes(net: Path) -> list[str]:
    """Return the interfaces of all default routes that are up."""
    try:
        rows = [line.split() for line in read_text(net / "route").splitlines()[1:]]
    except SourceError:
        return []
    return list(dict.fromkeys(row[0] for row in rows if row[1] == DEFAULT and int(row[3], 16) & UP))


def _given(subject: str, case: ExaminedNode, option: str, name: str, there: Sequence[str]) -> Finding:
    if name in there:
        return ok(subject, f"{name}, as given")
    candidates = [each for each in there if not each.startswith(NO_DISKS) and each != LOOPBACK] or there
    return problem(subject, f"no {subject} '{name}' on this machine", "", *_alternatives(case, option, candidates))


def _alternatives(case: ExaminedNode, option: str, names: Iterable[str]) -> tuple[str, ...]:
    return alternatives(case.advice.line(**{option: name}) for name in names)


def _names(read: Callable[[], Iterable[tuple[str, ...]]]) -> list[str]:
    try:
        return list(dict.fromkeys(series[1] for series in read() if len(series) > 1))
    except (SourceError, IndexError, ValueError):
        return []
