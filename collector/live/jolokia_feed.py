"""Follows a node through its Jolokia; sampling runs in a thread because reads may block."""

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, suppress

from collector.live.agent_feed import FeedListener, unexpected_text
from collector.live.cluster_interval import NodeInfo, dc_rack
from collector.model.clock import SystemClock, ticks
from collector.model.snapshot import IDENTITY_LABELS, Identity, Placement, Snapshot, SourceError, Tick
from collector.node.catalogue import BEANS
from collector.node.host.host_source import identity_of
from collector.node.jolokia.client import Jolokia
from collector.node.jolokia.mbean_source import MBeanSource
from collector.node.node_sampler import NameOverrides, NodeSampler
from collector.node.selection import DEFAULT_TABLES, Selection

LEARN_TIMEOUT_S = 3.0
# Delay after an unexpected error.
RETRY_S = 1.0


class _Stopped(Exception):  # noqa: N818 - not an error
    """The feed has been stopped."""


class _Clock(SystemClock):
    """The system clock; `stop` interrupts its sleep."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def sleep(self, seconds: float) -> None:
        """Sleep for at least `seconds`. Raises _Stopped if the feed is stopped."""
        if self._stop.wait(seconds):
            raise _Stopped


class JolokiaFeed:
    """Samples one node in a thread of its own, which calls `listener`, until `stop` is called."""

    def __init__(self, key: str, connect: Callable[[], Jolokia], interval_s: float, listener: FeedListener) -> None:
        self._key = key
        self._connect = connect
        self._interval_s = interval_s
        self._listener = listener
        self._stop = threading.Event()
        self._request: tuple[frozenset[str], bool] = frozenset(), False
        self._reported: tuple[Identity, tuple[str, ...]] | None = None
        self._thread = threading.Thread(target=self._run, name=f"top {key}", daemon=True)

    def request(self, metrics: frozenset[str], *, with_tables: bool) -> None:
        """Read these metrics from now on; a new metric's first rate appears after two ticks.

        Starts the thread if it is not running.
        """
        self._request = metrics, with_tables
        if not self._thread.is_alive() and not self._stop.is_set():
            self._thread.start()

    def stop(self) -> None:
        """Ask the thread to stop, without waiting for it."""
        self._stop.set()

    def _run(self) -> None:
        clock = _Clock(self._stop)
        with suppress(_Stopped):
            while not self._stop.is_set():
                try:
                    self._follow(clock)
                except _Stopped:
                    raise
                except Exception as error:
                    # Report the error, because the thread must not end silently.
                    self._listener.on_failure(self._key, unexpected_text(error))
                    clock.sleep(RETRY_S)

    def _follow(self, clock: _Clock) -> None:
        points = ticks(clock, self._interval_s, aligned=True)
        with closing(self._connect()) as jolokia:
            while not self._stop.is_set():
                self._sample(jolokia, clock, points)

    def _sample(self, jolokia: Jolokia, clock: _Clock, points: Iterator[Tick]) -> None:
        request = self._request
        metrics, with_tables = request
        selection = Selection(
            metrics | {series[0] for series in IDENTITY_LABELS}, "", "", DEFAULT_TABLES if with_tables else 0
        )
        overrides = NameOverrides(fallback_node=jolokia.host)
        source = MBeanSource(jolokia, BEANS, selection, clock)
        with closing(NodeSampler(source, selection, overrides, clock)) as sampler:
            try:
                sampler.learn(LEARN_TIMEOUT_S)
            except SourceError as error:
                self._listener.on_failure(self._key, str(error))
            identity, stream = Identity(), sampler.sample_stream()
            for snapshot in sampler.snapshots(points, self._interval_s):
                identity = identity.after(snapshot)
                self._report_node(identity, sampler)
                sample = stream.add(snapshot)
                if sample is None:
                    continue
                if problem := problem_of(snapshot, sampler.node_sources):
                    self._listener.on_failure(self._key, problem)
                else:
                    self._listener.on_sample(self._key, sample)
                if request != self._request:
                    return

    def _report_node(self, identity: Identity, sampler: NodeSampler) -> None:
        peers = sampler.facts.peers
        if self._reported == (identity, peers):
            return
        self._reported = identity, peers
        location = dc_rack(identity.dc, identity.rack)
        info = NodeInfo(identity.cluster, location, False, self._interval_s, Placement(*identity_of(sampler.host)))
        self._listener.on_node(self._key, info, sampler.facts.address, peers)


def problem_of(snapshot: Snapshot, sources: Collection[str]) -> str:
    """Return the reason why these sources have no values in a snapshot; "" if any source has values."""
    scrapes = [scrape for scrape in snapshot.scrapes if scrape.source in sources]
    if any(scrape.values for scrape in scrapes):
        return ""
    return next((scrape.problem for scrape in scrapes if scrape.problem), "")
