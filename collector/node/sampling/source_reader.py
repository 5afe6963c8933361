"""Reads all sources of a node on every tick.

A failing source does not prevent the others from being read, but all sources share the tick's timeout.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from collector.model.clock import Clock
from collector.model.snapshot import Scrape, Snapshot, SourceError, Tick, with_rounded_times

# On each tick, reading all sources may take SHARE_OF_INTERVAL of the interval, but at most MAX_TIMEOUT_S.
SHARE_OF_INTERVAL = 0.8
MAX_TIMEOUT_S = 10.0


class Source(Protocol):
    """A part of the node or the machine that is read once per tick."""

    @property
    def name(self) -> str:
        """The name under which its scrapes, errors and costs are reported."""

    def read(self, timeout_s: float) -> Scrape:
        """Read all metrics that are due. Raises SourceError on failure or after `timeout_s`."""


class SourceReader:
    """Reads the sources of one node in the given order; sources that cannot hang should come first."""

    def __init__(self, sources: Sequence[Source], clock: Clock, interval_s: float) -> None:
        self._sources = sources
        self._clock = clock
        self._timeout_s = min(SHARE_OF_INTERVAL * interval_s, MAX_TIMEOUT_S)

    def snapshots(self, node: Callable[[], str], ticks: Iterable[Tick]) -> Iterator[Snapshot]:
        """Yield a snapshot for each tick; `node` returns the node's current name."""
        for tick in ticks:
            deadline_s = self._clock.monotonic_s() + self._timeout_s
            scrapes = tuple(self._read(source, deadline_s) for source in self._sources)
            yield with_rounded_times(Snapshot(node(), tick, scrapes))

    def _read(self, source: Source, deadline_s: float) -> Scrape:
        began_s, cpu_s = self._clock.monotonic_s(), time.thread_time()
        try:
            scrape = source.read(max(0.0, deadline_s - began_s))
        except SourceError as error:
            scrape = Scrape(source.name, self._clock.monotonic_s(), problem=str(error))
        return replace(scrape, wall_s=self._clock.monotonic_s() - began_s, cpu_s=time.thread_time() - cpu_s)
