"""What a row of snapshots means: the same for those that are just read and those of a recording."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from collector.hold import Hold
from collector.model import Metric, Sample, Snapshot
from collector.rates import Readings, rates, remember


def samples(
    catalogue: Mapping[str, Metric], snapshots: Iterable[Snapshot], node: Sequence[str], *, paced: bool, met: bool
) -> Iterator[Sample]:
    """Yield what happened between one snapshot and the next, for every one after the first.

    `node` are the names of the sources that ask the node; `paced` says whether they answer at their own pace, and
    `met` whether the node has answered before: that a machine has no Cassandra is no news in every row.
    """
    before: Readings = {}
    hold = Hold(node) if paced else None
    started = False
    for snapshot in snapshots:
        met = met or any(batch.source in node and batch.values for batch in snapshot.batches)
        sample = rates(catalogue, before, snapshot)
        remember(before, snapshot)
        if hold is not None:
            sample = hold.add(snapshot, sample)
        if not met:
            sample = replace(sample, events=tuple(event for event in sample.events if event.kind != "no_answer"))
        if started:
            yield sample
        started = True
