"""One tick after the other: read every source, and let no source's trouble be another's."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from collector.model.clock import Clock
from collector.model.snapshot import Scrape, Snapshot, SourceError, Tick, with_rounded_times

# Of an interval, how much a tick may wait for a node that does not answer; never longer than the limit.
SHARE_OF_INTERVAL = 0.8
LONGEST_WAIT_S = 10.0


class Source(Protocol):
    """What is read once a tick."""

    @property
    def name(self) -> str:
        """What its scrapes, errors and costs are called."""

    def read(self, timeout_s: float) -> Scrape:
        """Read all that is due. Raises SourceError when that fails or takes longer than `timeout_s`."""


class SourceReader:
    """Reads the sources of one node, in their order: those that cannot hang come first."""

    def __init__(self, sources: Sequence[Source], clock: Clock, interval_s: float) -> None:
        self._sources = sources
        self._clock = clock
        self._timeout_s = min(SHARE_OF_INTERVAL * interval_s, LONGEST_WAIT_S)

    def snapshots(self, node: Callable[[], str], ticks: Iterable[Tick]) -> Iterator[Snapshot]:
        """Yield what was read at each tick, under the name that the node then has."""
        for tick in ticks:
            ends_s = self._clock.monotonic_s() + self._timeout_s
            scrapes = tuple(self._read(source, ends_s) for source in self._sources)
            yield with_rounded_times(Snapshot(node(), tick, scrapes))

    def _read(self, source: Source, ends_s: float) -> Scrape:
        began_s, cpu_s = self._clock.monotonic_s(), time.thread_time()
        try:
            scrape = source.read(max(0.0, ends_s - began_s))
        except SourceError as error:
            scrape = Scrape(source.name, self._clock.monotonic_s(), problem=str(error))
        return replace(scrape, wall_s=self._clock.monotonic_s() - began_s, cpu_s=time.thread_time() - cpu_s)
