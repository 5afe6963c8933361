"""Checks the host's metrics by reading every source once."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from cli.setup.doctor.finding import Finding, ok, problem, warning
from collector.model.clock import Clock
from collector.model.snapshot import SourceError
from collector.node.catalogue import HOST
from collector.node.host.cassandra_processes import NodeFacts
from collector.node.host.host_source import HostSource, HostSubject
from collector.node.host.kernel_files import Host
from collector.node.node_sampler import NameOverrides, NodeSampler
from collector.node.selection import Selection, Table

SUBJECT = "machine"
# The summary and the fix for a source that provides no values, keyed by the source's name.
EMPTY = {
    "pressure": (
        "the kernel provides no pressure stall information",
        "add psi=1 to the kernel's command line, and reboot",
    ),
}
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
    return ", ".join(headers) if headers else _some([metric.name for metric in part.metrics])


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:2]) + (" …" if len(names) > 2 else "")
