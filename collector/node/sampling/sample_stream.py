"""Derives samples from snapshots, whether from a live node or from a recording."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from collector.model.metric import Metric
from collector.model.rates import Readings, rates, update_readings
from collector.model.sample import Sample
from collector.model.snapshot import Snapshot
from collector.node.sampling.last_known import LastKnown


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
        self._last_known = LastKnown(node_sources) if paced else None
        self._met = met
        self._readings: Readings = {}
        self._started = False

    def add(self, snapshot: Snapshot) -> Sample | None:
        """Return the sample for the interval that ends with `snapshot`, or None for the first snapshot."""
        self._met = self._met or any(
            scrape.source in self._node_sources and scrape.values for scrape in snapshot.scrapes
        )
        sample = rates(self._catalogue, self._readings, snapshot)
        update_readings(self._readings, snapshot)
        if self._last_known is not None:
            sample = self._last_known.add(snapshot, sample)
        if not self._met:
            sample = replace(sample, events=tuple(event for event in sample.events if event.kind != "no_answer"))
        started, self._started = self._started, True
        return sample if started else None

    def samples(self, snapshots: Iterable[Snapshot]) -> Iterator[Sample]:
        """Yield a sample for every snapshot after the first."""
        for snapshot in snapshots:
            sample = self.add(snapshot)
            if sample is not None:
                yield sample
