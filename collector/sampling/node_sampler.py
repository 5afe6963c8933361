"""One node and the machine under it, watched: what to sample is found by itself, and anew when the node returns."""

import socket
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from collector.backoff import Backoff
from collector.catalogue import CATALOGUE, HOST
from collector.host.cassandra_processes import DEFAULT_DATA, NodeFacts
from collector.host.discovery import disk_of, has_separate_network, interface_of, is_this_machine
from collector.host.host_source import HostSource
from collector.host.kernel_files import Host
from collector.model.clock import Clock
from collector.model.sample import Sample
from collector.model.snapshot import Snapshot, SourceError, Tick
from collector.sampling.sample_stream import SampleStream
from collector.sampling.selection import Selection, Table
from collector.sampling.source_reader import Source, SourceReader

LEARN_TIMEOUT_S = 5.0
# The question comes between two ticks and must not delay the next one for long.
PEERS_TIMEOUT_S = 1.0
UNKNOWN = "-"
"""A disk or interface that was not found: no device has this name, so nothing is read rather than all of them."""


@dataclass(frozen=True)
class NameOverrides:
    """Names that replace discovery; "" to discover.

    fallback_node  the node's name until it announces its address, such as the one of the last run.
    """

    node: str = ""
    disk: str = ""
    interface: str = ""
    fallback_node: str = ""


class Transport(Protocol):
    """One way to a Cassandra node, such as its Jolokia.

    kind   in a word.
    paced  whether its sources answer at their own pace, mostly between ticks.
    """

    kind: str
    paced: bool

    @property
    def host(self) -> str:
        """The name or address at which it is asked."""

    @property
    def sources(self) -> Sequence[Source]:
        """What to read of it in every tick."""

    @property
    def members(self) -> frozenset[str]:
        """The addresses of all nodes, live or not, that its last reading named; empty where it named none."""

    def learn(self, timeout_s: float) -> NodeFacts:
        """Ask the node about itself and for what it has. Raises SourceError when it does not answer."""

    def peers(self, timeout_s: float) -> tuple[str, ...]:
        """Ask the node for the addresses of its ring, sorted. Raises SourceError when it does not answer."""

    def provides(self, metric: str) -> bool:
        """Return whether it has what stands behind a metric."""

    def tables(self) -> Collection[Table]:
        """Return the keyspaces it has, each with "" and with its tables. Raises SourceError when it does not answer."""

    def close(self) -> None:
        """Leave the node."""


class NodeSampler:
    """Samples one node.

    Without a `node` only this machine is watched. `host` is None when the node runs on another machine: this
    machine's figures are not its own.
    """

    def __init__(
        self,
        node: Transport | None,
        selection: Selection,
        overrides: NameOverrides,
        clock: Clock,
        root: Path = Path("/"),
        extra: Sequence[Source] = (),
    ) -> None:
        """Take the way to the node, what to read, and further sources, such as the node's log."""
        self._way = node
        self._selection = selection
        self._overrides = overrides
        self._clock = clock
        self._root = root
        self._extra = extra
        self._learned = ""
        self._learning = Backoff()
        self._asking_peers = Backoff()
        self._members: frozenset[str] = frozenset()
        self.facts = NodeFacts()
        self.host: Host | None = None
        if node is None or is_this_machine(node.host):
            self.host = self._host(None)

    @property
    def node(self) -> str:
        """The node's name: the one given, else the address it announces or once announced, else this machine's name."""
        return self._overrides.node or self.facts.address or self._overrides.fallback_node or socket.gethostname()

    @property
    def kind(self) -> str:
        """How the node is asked, in a word; "" without one."""
        return self._way.kind if self._way else ""

    def learn(self, timeout_s: float = LEARN_TIMEOUT_S) -> bool:
        """Ask the node about itself and find its process here; return whether it knows itself yet.

        A node that is starting answers before it knows its own address: what was known before then stays.
        Raises SourceError when it does not answer.
        """
        if self._way is None:
            return False
        facts = self._way.learn(timeout_s)
        if facts.address or not self.facts.jvm:
            self.facts = facts
            self.host = self._host(facts.pid) if facts.here else None
        if facts.address:
            self._learned = facts.origin
        return bool(facts.address)

    def _host(self, pid: int | None) -> Host:
        host = Host(self._root, pid, directories=self.facts.directories or (_existing(DEFAULT_DATA),))
        host = replace(host, separate_network=has_separate_network(host.process_dir))
        disk = self._overrides.disk or disk_of(host.directories[0], host.process_dir, self._root)
        interface = self._overrides.interface or interface_of(self.facts.address, host.network_dir)
        return replace(host, disks=_known(disk), interfaces=_known(interface))

    def provides(self, metric: str) -> bool:
        """Return whether the node has what stands behind a metric of its catalogue."""
        return self._way is not None and self._way.provides(metric)

    def tables(self) -> Collection[Table]:
        """Return the node's keyspaces, each with "" and with its tables where these are read.

        Raises SourceError when it does not answer.
        """
        return self._way.tables() if self._way is not None else ()

    @property
    def devices(self) -> tuple[str, str]:
        """The names of the sampled disk and interface, "" for one that was not found."""
        names = (self.host.disks[0], self.host.interfaces[0]) if self.host else ("", "")
        disk, interface = ("" if name == UNKNOWN else name for name in names)
        return disk, interface

    @property
    def node_sources(self) -> list[str]:
        """The names of the sources that ask the node."""
        return [source.name for source in self._way.sources] if self._way else []

    @property
    def paced(self) -> bool:
        """Whether they answer at their own pace."""
        return self._way is not None and self._way.paced

    @property
    def answered(self) -> bool:
        """Whether the node ever answered."""
        return bool(self.facts.jvm)

    def snapshots(self, ticks: Iterable[Tick], interval_s: float) -> Iterator[Snapshot]:
        """Yield what was read at each tick; after a restart the node is asked about itself again."""
        wanted = self._selection.metrics
        sources: list[Source] = [
            HostSource(part, lambda: self.host, self._clock)
            for part in HOST
            if wanted is None or any(metric.name in wanted for metric in part.metrics)
        ]
        sources += self._extra
        if self._way is not None:
            sources += self._way.sources
        for snapshot in SourceReader(sources, self._clock, interval_s).snapshots(lambda: self.node, ticks):
            self._notice(snapshot)
            yield snapshot

    def sample_stream(self) -> SampleStream:
        """Return a stream that derives samples from this node's snapshots."""
        return SampleStream(CATALOGUE, self.node_sources, paced=self.paced, met=self.answered)

    def samples(self, ticks: Iterable[Tick], interval_s: float) -> Iterator[Sample]:
        """Yield the sample of every tick after the first."""
        return self.sample_stream().samples(self.snapshots(ticks, interval_s))

    def close(self) -> None:
        """Leave the node."""
        if self._way is not None:
            self._way.close()

    def _notice(self, snapshot: Snapshot) -> None:
        """Ask the node about itself after a start, and for its peers when the list is out of date."""
        own = set(self.node_sources)
        origin = next((scrape.origin for scrape in snapshot.scrapes if scrape.origin and scrape.source in own), "")
        if not origin or self._way is None:
            return
        if origin != self._learned:
            self._learn_again()
        else:
            self._update_peers(self._way)

    def _learn_again(self) -> None:
        if not self._learning.is_due(self._clock.monotonic_s()):
            return
        try:
            complete = self.learn()
        except SourceError:
            # It went away again; the tick in which it returns comes here again.
            complete = False
        if complete:
            self._learning.reset()
        else:
            self._learning.failed(self._clock.monotonic_s())

    def _update_peers(self, node: Transport) -> None:
        """Ask for the peers until the list agrees with the members that the last reading named.

        The members come from gossip and the list from the ring, which follows later. Some members, such as clients
        that use gossip, never join the ring: then the question comes once a minute.
        """
        members = node.members
        if members != self._members:
            self._members = members
            self._asking_peers.reset()
        now_s = self._clock.monotonic_s()
        if not members or members == set(self.facts.peers) or not self._asking_peers.is_due(now_s):
            return
        # A failure is an attempt too: the tick reports it if it lasts.
        self._asking_peers.failed(now_s)
        with suppress(SourceError):
            self.facts = replace(self.facts, peers=node.peers(PEERS_TIMEOUT_S))


def _existing(path: Path) -> Path:
    return path if path.exists() else Path("/")


def _known(name: str) -> tuple[str, ...]:
    return (name or UNKNOWN,)
