"""What a row of snapshots means: the same for those that are just read and those of a recording."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from collector.model.metric import Metric
from collector.model.rates import Readings, rates, remember
from collector.model.sample import Sample
from collector.model.snapshot import Snapshot
from collector.sampling.last_known import LastKnown


class SampleStream:
    """Takes one snapshot after the other and says what happened since the one before."""

    def __init__(self, catalogue: Mapping[str, Metric], node: Sequence[str], *, paced: bool, met: bool) -> None:
        """Take what the series mean, and the names of the sources that ask the node.

        `paced` says whether these answer at their own pace, and `met` whether the node has answered before: that a
        machine has no Cassandra is no news in every row.
        """
        self._catalogue = catalogue
        self._node = node
        self._hold = LastKnown(node) if paced else None
        self._met = met
        self._before: Readings = {}
        self._started = False

    def take(self, snapshot: Snapshot) -> Sample | None:
        """Return what happened since the snapshot before; None for the first."""
        self._met = self._met or any(scrape.source in self._node and scrape.values for scrape in snapshot.scrapes)
        sample = rates(self._catalogue, self._before, snapshot)
        remember(self._before, snapshot)
        if self._hold is not None:
            sample = self._hold.add(snapshot, sample)
        if not self._met:
            sample = replace(sample, events=tuple(event for event in sample.events if event.kind != "no_answer"))
        started, self._started = self._started, True
        return sample if started else None


def samples(
    catalogue: Mapping[str, Metric], snapshots: Iterable[Snapshot], node: Sequence[str], *, paced: bool, met: bool
) -> Iterator[Sample]:
    """Yield what happened between one snapshot and the next, for every one after the first: see `SampleStream`."""
    sampling = SampleStream(catalogue, node, paced=paced, met=met)
    for snapshot in snapshots:
        sample = sampling.take(snapshot)
        if sample is not None:
            yield sample
