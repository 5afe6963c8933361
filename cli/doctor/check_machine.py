"""The machine's own figures: every source of them read once."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from cli.doctor.finding import Finding, ok, problem, warning
from collector.catalogue import HOST
from collector.host.cassandra_processes import NodeFacts
from collector.host.host_source import HostSource, HostSubject
from collector.host.kernel_files import Host
from collector.model.clock import Clock
from collector.model.snapshot import SourceError
from collector.sampling.node_sampler import NameOverrides, NodeSampler
from collector.sampling.selection import Selection, Table

SUBJECT = "machine"
# What is missing where nothing can be read, and what brings it; by the source's name.
EMPTY = {
    "pressure": (
        "this kernel keeps no pressure stall information",
        "add psi=1 to the kernel's command line, and reboot",
    ),
}
# Their own findings tell of them: which device it is may not be known.
OWN_FINDINGS = ("disk",)
# Without a process there is nothing of them, and it has been said.
OF_THE_PROCESS = ("cgroup", "process")


class Known:
    """A way to a node that is not asked any more: what it said is known."""

    kind = "known"
    paced = False
    sources = ()
    members: frozenset[str] = frozenset()

    def __init__(self, facts: NodeFacts, host: str) -> None:
        self._facts = facts
        self.host = host

    def learn(self, timeout_s: float) -> NodeFacts:
        """Return what is known."""
        del timeout_s
        return self._facts

    def peers(self, timeout_s: float) -> tuple[str, ...]:
        """Return what is known."""
        del timeout_s
        return self._facts.peers

    def provides(self, metric: str) -> bool:
        """Return that nothing is asked."""
        del metric
        return False

    def tables(self) -> Collection[Table]:
        """Return nothing: nobody asks the node."""
        return ()

    def close(self) -> None:
        """Do nothing."""


def host_of(facts: NodeFacts, given: NameOverrides, clock: Clock, root: Path = Path("/")) -> Host | None:
    """Return what of this machine the line watches, given what the node says; None for a node elsewhere."""
    here = facts.here or not facts.jvm
    watch = NodeSampler(Known(facts, "127.0.0.1" if here else ""), Selection(frozenset()), given, clock, root)
    if facts.jvm:
        watch.learn()
    return watch.host if here else None


def examine(host: Host, clock: Clock, parts: Iterable[HostSubject] = HOST) -> list[Finding]:
    """Read every source once; the ones that work share a line."""
    works, findings = [], []
    for part in parts:
        try:
            values = HostSource(part, lambda: host, clock).read(1.0).values
        except SourceError as error:
            findings.append(problem(SUBJECT, f"{part.name}: {error}", f"'-' for {_columns(part)}"))
            continue
        if values:
            works.append(part.name)
        elif part.name not in OWN_FINDINGS and (host.pid is not None or part.name not in OF_THE_PROCESS):
            what, mend = EMPTY.get(part.name, ("nothing to be read", ""))
            findings.append(
                warning(SUBJECT, f"{part.name}: {what}", f"'-' for {_columns(part)}", *([mend] if mend else []))
            )
    return [ok(SUBJECT, f"read: {', '.join(works)}"), *findings] if works else findings


def _columns(part: HostSubject) -> str:
    headers = [column.header for metric in part.metrics for column in metric.columns]
    return ", ".join(headers) if headers else _some([metric.name for metric in part.metrics])


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:2]) + (" …" if len(names) > 2 else "")
