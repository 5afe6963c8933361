"""The node sampler: discovers a node and its machine, and reads all their sources on every tick."""

import socket
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from collector.model.clock import Backoff, Clock
from collector.model.metric import Metric, Series
from collector.model.rates import Readings, rates, update_readings
from collector.model.snapshot import Derived, Sample, Scrape, Snapshot, SourceError, Tick, with_rounded_times
from collector.node.catalogue import CATALOGUE, HOST
from collector.node.host.cassandra_processes import DEFAULT_DATA, NodeFacts
from collector.node.host.discovery import disks_of, has_separate_network, interface_of, is_this_machine
from collector.node.host.host_source import HostSource
from collector.node.host.kernel_files import Host
from collector.node.selection import Selection, Table

# On each tick, reading all sources may take SHARE_OF_INTERVAL of the interval, but at most MAX_TIMEOUT_S.
SHARE_OF_INTERVAL = 0.8
MAX_TIMEOUT_S = 10.0
# If a read takes longer than both its timeout and this, casstat was paused, perhaps after the node had answered.
PAUSE_S = 1.0
LEARN_TIMEOUT_S = 5.0
# Peers are read between ticks; a slow response must not delay the next tick for long.
PEERS_TIMEOUT_S = 1.0
UNKNOWN = "-"
"""Stands for a disk or interface that was not found. It matches no device, whereas an empty tuple would match all."""


class Source(Protocol):
    """A part of the node or the machine that is read once per tick."""

    @property
    def name(self) -> str:
        """The name under which its scrapes, errors and costs are reported."""

    def read(self, timeout_s: float) -> Scrape:
        """Read all metrics that are due. Raises SourceError on failure or after `timeout_s`."""


class SampleStream:
    """Derives one node's samples, each from a snapshot and the previous readings."""

    def __init__(self, catalogue: Mapping[str, Metric], node_sources: Sequence[str], *, paced: bool, met: bool) -> None:
        """Create a stream for one node.

        catalogue     the metrics to derive.
        node_sources  the names of the sources that read Cassandra rather than the machine.
        paced         whether these sources answer at their own pace, not on every tick.
        met           whether the node has answered before. Until it has, samples carry no `no_answer` events, which
                      would repeat in every row on a machine without Cassandra.
        """
        self._catalogue = catalogue
        self._node_sources = node_sources
        self._paced = paced
        self._met = met
        self._readings: Readings = {}
        # The last values of each source that answers at its own pace, and the time at which they were read.
        self._last_values: dict[str, dict[Series, Derived]] = {}
        self._read_s: dict[str, float] = {}
        self._started = False

    def add(self, snapshot: Snapshot) -> Sample | None:
        """Return the sample for the interval that ends with `snapshot`, or None for the first snapshot."""
        self._met = self._met or any(
            scrape.source in self._node_sources and scrape.values for scrape in snapshot.scrapes
        )
        sample = rates(self._catalogue, self._readings, snapshot)
        update_readings(self._readings, snapshot)
        if self._paced:
            sample = self._with_last_known(snapshot, sample)
        if not self._met:
            sample = replace(sample, events=tuple(event for event in sample.events if event.kind != "no_answer"))
        started, self._started = self._started, True
        return sample if started else None

    def _with_last_known(self, snapshot: Snapshot, sample: Sample) -> Sample:
        """Return the sample with the last known values of the node's sources, and their age.

        A new response replaces all earlier values of its source; a failure without values removes them.
        """
        for scrape in snapshot.scrapes:
            if scrape.source in self._node_sources and scrape.values:
                self._last_values[scrape.source] = {s: sample.values[s] for s in scrape.values if s in sample.values}
                self._read_s[scrape.source] = scrape.at_s
            elif scrape.problem:
                self._last_values.pop(scrape.source, None)
        stale = {s: v for values in self._last_values.values() for s, v in values.items() if s not in sample.values}
        # The first source provides the reads and writes, so its age is shown as the row's age.
        read_s = next((self._read_s[source] for source in self._node_sources if source in self._read_s), None)
        now_s = max((scrape.at_s for scrape in snapshot.scrapes), default=0.0)
        return replace(sample, last_known=stale, age_s=None if read_s is None else now_s - read_s)

    def samples(self, snapshots: Iterable[Snapshot]) -> Iterator[Sample]:
        """Yield a sample for every snapshot after the first."""
        for snapshot in snapshots:
            sample = self.add(snapshot)
            if sample is not None:
                yield sample


@dataclass(frozen=True)
class NameOverrides:
    """Names that override the discovered ones; "" keeps the discovered name.

    fallback_node  the name to use, such as the last known one, until the node announces its address.
    """

    node: str = ""
    disk: str = ""
    interface: str = ""
    fallback_node: str = ""


class Transport(Protocol):
    """A connection to a Cassandra node, such as Jolokia or nodetool.

    kind   its name, such as "jolokia".
    paced  whether its sources answer at their own pace, mostly between ticks.
    """

    kind: str
    paced: bool

    @property
    def host(self) -> str:
        """The node's host name or address."""

    @property
    def sources(self) -> Sequence[Source]:
        """The sources to read on every tick."""

    @property
    def members(self) -> frozenset[str]:
        """The addresses of all gossip members, live or not, as last read; empty before the first read."""

    def learn(self, timeout_s: float) -> NodeFacts:
        """Read the facts about the node and discover its metrics. Raises SourceError if the node does not answer."""

    def peers(self, timeout_s: float) -> tuple[str, ...]:
        """Return the addresses in the node's ring, sorted. Raises SourceError if the node does not answer."""

    def provides(self, metric: str) -> bool:
        """Return whether the node is known to provide the metric."""

    def tables(self) -> Collection[Table]:
        """Return (keyspace, "") for each keyspace and, if its tables are read, (keyspace, table) for each of them.

        Raises SourceError if the node does not answer.
        """

    def close(self) -> None:
        """Close the connection, or kill the nodetool processes that are running."""


class NodeSampler:
    """Samples one node and its machine.

    Without a transport, only this machine is sampled. `host` describes the machine; it is None for a remote node.
    """

    def __init__(
        self,
        transport: Transport | None,
        selection: Selection,
        overrides: NameOverrides,
        clock: Clock,
        root: Path = Path("/"),
        extra: Sequence[Source] = (),
    ) -> None:
        """Create a sampler that also reads the sources in `extra`, such as the node's log."""
        self._transport = transport
        self._selection = selection
        self._overrides = overrides
        self._clock = clock
        self._root = root
        self._extra = extra
        self._learned_origin = ""
        self._learn_backoff = Backoff()
        self._peers_backoff = Backoff()
        self._members: frozenset[str] = frozenset()
        self.facts = NodeFacts()
        self.host: Host | None = None
        self._machine = socket.gethostname()
        if transport is None or is_this_machine(transport.host):
            self.host = self._host(None)
        else:
            self._machine = transport.host

    @property
    def node(self) -> str:
        """The node's name: the override, else its broadcast address, else the fallback, else that of its machine."""
        return self._overrides.node or self.facts.address or self._overrides.fallback_node or self._machine

    @property
    def kind(self) -> str:
        """The transport's kind, such as "jolokia"; "" without a transport."""
        return self._transport.kind if self._transport else ""

    def learn(self, timeout_s: float = LEARN_TIMEOUT_S) -> bool:
        """Read the facts about the node and find its process; return whether the facts are complete.

        A starting node answers before it knows its own address; until it knows the address, earlier facts are kept.
        Raises SourceError if the node does not answer.
        """
        if self._transport is None:
            return False
        facts = self._transport.learn(timeout_s)
        if facts.address or not self.facts.jvm:
            self.facts = facts
            self.host = self._host(facts.pid) if facts.is_local else None
        if facts.address:
            self._learned_origin = facts.origin
        return bool(facts.address)

    def _host(self, pid: int | None) -> Host:
        data = DEFAULT_DATA if DEFAULT_DATA.exists() else Path("/")
        host = Host(self._root, pid, directories=self.facts.directories or (data,))
        host = replace(host, separate_network=has_separate_network(host.process_dir))
        given = (self._overrides.disk,) if self._overrides.disk else ()
        disks = given or disks_of(host.directories, host.process_dir, self._root)
        interface = self._overrides.interface or interface_of(self.facts.address, host.network_dir)
        return replace(host, disks=disks or (UNKNOWN,), interfaces=(interface or UNKNOWN,))

    def provides(self, metric: str) -> bool:
        return self._transport is not None and self._transport.provides(metric)

    def tables(self) -> Collection[Table]:
        return self._transport.tables() if self._transport is not None else ()

    @property
    def devices(self) -> tuple[str, str]:
        """The names of the sampled disk (see `Host.disk`) and interface; "" if not found or on a remote machine."""
        names = (self.host.disk, self.host.interfaces[0]) if self.host else ("", "")
        disk, interface = ("" if name == UNKNOWN else name for name in names)
        return disk, interface

    @property
    def node_sources(self) -> list[str]:
        return [source.name for source in self._transport.sources] if self._transport else []

    @property
    def paced(self) -> bool:
        """Whether the node's sources answer at their own pace, not on every tick."""
        return self._transport is not None and self._transport.paced

    @property
    def answered(self) -> bool:
        return bool(self.facts.jvm)

    def snapshots(self, ticks: Iterable[Tick], interval_s: float) -> Iterator[Snapshot]:
        """Yield a snapshot for each tick; read the node's facts again after it restarts."""
        selected = self._selection.metrics
        sources: list[Source] = [
            HostSource(subject, lambda: self.host, self._clock)
            for subject in HOST
            if selected is None or any(metric.name in selected for metric in subject.metrics)
        ]
        sources += self._extra
        if self._transport is not None:
            sources += self._transport.sources
        timeout_s = min(SHARE_OF_INTERVAL * interval_s, MAX_TIMEOUT_S)
        for tick in ticks:
            deadline_s = self._clock.monotonic_s() + timeout_s
            # Those of the transport come last, because they may hang.
            scrapes = tuple(self._read(source, deadline_s, max(timeout_s, PAUSE_S)) for source in sources)
            snapshot = with_rounded_times(Snapshot(self.node, tick, scrapes))
            self._update_facts(snapshot)
            yield snapshot

    def _read(self, source: Source, deadline_s: float, longest_s: float) -> Scrape:
        began_s, cpu_s = self._clock.monotonic_s(), time.thread_time()
        try:
            scrape = source.read(max(0.0, deadline_s - began_s))
        except SourceError as error:
            scrape = Scrape(source.name, self._clock.monotonic_s(), problem=str(error))
        took_s = scrape.at_s - began_s
        if took_s > longest_s and scrape.values:
            # The rates would be wrong, because the values may be as old as the read was long.
            scrape = replace(scrape, values={}, problem=f"the read took {took_s:.1f} s: was casstat paused?")
        return replace(scrape, wall_s=self._clock.monotonic_s() - began_s, cpu_s=time.thread_time() - cpu_s)

    def sample_stream(self) -> SampleStream:
        """Return a stream that derives samples from this node's snapshots."""
        return SampleStream(CATALOGUE, self.node_sources, paced=self.paced, met=self.answered)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _update_facts(self, snapshot: Snapshot) -> None:
        """Read the facts again after a restart, or the peers if they are out of date."""
        node_sources = set(self.node_sources)
        origin = next(
            (scrape.origin for scrape in snapshot.scrapes if scrape.origin and scrape.source in node_sources), ""
        )
        if not origin or self._transport is None:
            return
        if origin != self._learned_origin:
            self._learn_again()
        else:
            self._update_peers(self._transport)

    def _learn_again(self) -> None:
        if not self._learn_backoff.is_due(self._clock.monotonic_s()):
            return
        try:
            complete = self.learn()
        except SourceError:
            # The node did not answer: retry on a later tick.
            complete = False
        if complete:
            self._learn_backoff.reset()
        else:
            self._learn_backoff.failed(self._clock.monotonic_s())

    def _update_peers(self, transport: Transport) -> None:
        """Read the peers again if they differ from the gossip members last seen and a retry is due.

        Peers come from the ring, which lags behind gossip. Some members, such as clients that use gossip, never join
        the ring; the peers are then read repeatedly, with growing pauses of up to a minute.
        """
        members = transport.members
        if members != self._members:
            self._members = members
            self._peers_backoff.reset()
        now_s = self._clock.monotonic_s()
        if not members or members == set(self.facts.peers) or not self._peers_backoff.is_due(now_s):
            return
        # Back off whether or not the attempt succeeds; if the node keeps failing, the next ticks report it.
        self._peers_backoff.failed(now_s)
        with suppress(SourceError):
            self.facts = replace(self.facts, peers=transport.peers(PEERS_TIMEOUT_S))
