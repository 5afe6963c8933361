"""A node through its Jolokia, sampled here: in a thread of its own, for that may wait."""

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import closing

from collector.catalogue import BEANS
from collector.host.host_source import identity_of
from collector.jolokia.client import Jolokia
from collector.jolokia.mbean_source import MBeanSource
from collector.model.clock import SystemClock, ticks
from collector.model.identity import Identity
from collector.model.sample import Sample
from collector.model.snapshot import Snapshot, SourceError, Tick
from collector.sampling.node_sampler import NameOverrides, NodeSampler
from collector.sampling.selection import DEFAULT_TABLES, Selection
from exporters.live.agent_feed import FeedListener
from exporters.live.frame_assembler import NodeInfo
from exporters.live.live_columns import TABLE_METRICS

LEARN_S = 3.0


class _Stopped(Exception):  # noqa: N818 - nothing is wrong
    """It is to end."""


class _Clock(SystemClock):
    """The machine's, whose sleep ends when nobody watches any more."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def sleep(self, seconds: float) -> None:
        """Return after at least `seconds`. Raises _Stopped."""
        if self._stop.wait(seconds):
            raise _Stopped


class JolokiaFeed:
    """Samples one node until it is stopped; `heard` is called from its thread."""

    def __init__(self, key: str, connect: Callable[[], Jolokia], interval_s: float, heard: FeedListener) -> None:
        self._key = key
        self._connect = connect
        self._interval_s = interval_s
        self._heard = heard
        self._stop = threading.Event()
        self._metrics: frozenset[str] = frozenset()
        self._told: tuple[Identity, tuple[str, ...]] | None = None
        self._thread = threading.Thread(target=self._run, name=f"top {key}", daemon=True)

    def want(self, metrics: frozenset[str]) -> None:
        """Read these from now on; what is read anew has its first rate a tick later."""
        self._metrics = metrics
        if not self._thread.is_alive() and not self._stop.is_set():
            self._thread.start()

    def stop(self) -> None:
        """End it soon; waits for nothing."""
        self._stop.set()

    def _run(self) -> None:
        clock = _Clock(self._stop)
        points = ticks(clock, self._interval_s, aligned=True)
        jolokia = self._connect()
        try:
            while not self._stop.is_set():
                self._watch(jolokia, clock, points)
        except _Stopped:
            pass
        finally:
            jolokia.close()

    def _watch(self, jolokia: Jolokia, clock: _Clock, points: Iterator[Tick]) -> None:
        """Sample until something else is wanted."""
        metrics = self._metrics
        tables = DEFAULT_TABLES if metrics >= TABLE_METRICS else 0
        selection = Selection(
            metrics | {"cassandra_cluster_name", "cassandra_datacenter", "cassandra_rack"}, "", "", tables
        )
        overrides = NameOverrides(fallback_node=jolokia.host)
        with closing(NodeSampler(MBeanSource(jolokia, BEANS, selection, clock), selection, overrides, clock)) as watch:
            try:
                watch.learn(LEARN_S)
            except SourceError as error:
                self._heard.failed(self._key, str(error))
            identity, stream = Identity(), watch.sample_stream()
            for snapshot in watch.snapshots(points, self._interval_s):
                identity = identity.after(snapshot)
                self._know(identity, watch)
                sample = stream.add(snapshot)
                if sample is None:
                    continue
                self._hear(sample, problem_of(snapshot, watch.node_sources))
                if metrics != self._metrics:
                    return

    def _hear(self, sample: Sample, problem: str) -> None:
        """Pass on the sample, or the problem when Cassandra did not answer."""
        if problem:
            self._heard.failed(self._key, problem)
        else:
            self._heard.sample(self._key, sample)

    def _know(self, identity: Identity, watch: NodeSampler) -> None:
        peers = watch.facts.peers
        if self._told == (identity, peers):
            return
        self._told = identity, peers
        place = "/".join(filter(None, (identity.dc, identity.rack)))
        known = NodeInfo(identity.cluster, place, False, self._interval_s, *identity_of(watch.host))
        self._heard.known(self._key, known, watch.facts.address, peers)


def problem_of(snapshot: Snapshot, sources: Collection[str]) -> str:
    """Return why these sources said nothing in a snapshot; "" when they did."""
    own = [scrape for scrape in snapshot.scrapes if scrape.source in sources]
    return (
        "" if any(scrape.values for scrape in own) else next((scrape.problem for scrape in own if scrape.problem), "")
    )
