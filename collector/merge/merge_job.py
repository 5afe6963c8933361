"""The input and output of a merge: its jobs, each node's run and result, and the merged runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from collector.merge.clock_correction import IDENTITY, ClockCorrection
from collector.merge.grid import ANY_TIME, ClusterSample, Grid, NodeInterval, SpanGrid
from collector.merge.recordings import Recording
from collector.model.metric import Metric, Series
from collector.model.snapshot import Event, Sample
from collector.recording.header import MAX_SERIES, Header
from collector.recording.reader import Integrity

if TYPE_CHECKING:
    from collector.merge.node_columns import NodeColumns

DEFAULT_S = 5.0
"""The default interval for a merged run."""
Product = TypeVar("Product")


@dataclass(frozen=True)
class NodeRun:
    """One node's intervals on the grid, as arrays; as objects, they have only the `wanted` series (see `Job`)."""

    columns: "NodeColumns"
    wanted: frozenset[str | Series] | None = None

    @property
    def node(self) -> str:
        return self.columns.node

    @property
    def head(self) -> Header:
        return self.columns.head

    @cached_property
    def intervals(self) -> Mapping[int, NodeInterval]:
        """The intervals with at least one of the node's ticks, by index."""
        return self.columns.intervals(self.wanted)

    @property
    def events(self) -> Iterator[tuple[float, Sequence[Event]]]:
        """The end of each interval with events, and its events."""
        grid, of_intervals = self.columns.grid, zip(self.columns.indices, self.columns.events, strict=True)
        return ((grid.end_of(index), events) for index, events in of_intervals if events)

    def answered(self, sample: Sample) -> bool:
        """Return whether Cassandra answered in the interval of `sample`, one of the node's samples."""
        return any(source in sample.elapsed_s for source in self.head.sources)


@dataclass(frozen=True)
class NodeResult(Generic[Product]):
    """The merge result for one node; `product` is what `Job.make` built from its run."""

    node: str
    head: Header
    ticks: int
    missed: int
    integrity: Integrity
    product: Product


@dataclass(frozen=True)
class Merged(Generic[Product]):
    """A merged run: all nodes, and the cluster by interval.

    indices  ranges from the first interval to the last.
    folders  the directories with recordings of each node.
    """

    grid: Grid
    nodes: tuple[NodeResult[Product], ...]
    cluster: Mapping[int, ClusterSample]
    indices: range
    folders: Mapping[str, frozenset[Path]]


@dataclass(frozen=True)
class Job(Generic[Product]):
    """The parameters of a merge; several jobs can share one pass over the recordings (`merge_all`).

    clocks      the corrections of the nodes' clocks; a node without one uses the reference clock.
    wanted      the metrics, and individual series of other metrics, that `make` needs; None for all. The cluster's
                samples have at least these.
    make        builds one node's product; may be called in another process.
    max_series  the maximum number of series per node.
    observed    the time range in which all nodes should have been sampled; `observing` sets it.
    has_cluster  whether the cluster's samples need values, which take time and memory if there are many intervals.
    """

    grid: Grid
    clocks: Mapping[str, ClockCorrection]
    wanted: frozenset[str | Series] | None
    make: Callable[[NodeRun], Product]
    max_series: int = MAX_SERIES
    observed: tuple[float, float] = ANY_TIME
    has_cluster: bool = True

    def observing(self, recordings: Sequence[Recording]) -> "Job[Product]":
        """Return the job with the time range of all recordings, or of the spans, if the grid has them."""
        if isinstance(self.grid, SpanGrid):
            spans = self.grid.spans or (ANY_TIME,)
            return replace(self, observed=(spans[0][0], spans[-1][1]))
        # After a clock was set, the first and the last tick do not limit the others.
        clocks = [(self.clock_of(recording), recording) for recording in recordings]
        sessions = [(clock, part) for clock, recording in clocks if not clock.segments for part in recording.sessions]
        begin_s = min((clock.reference_s(part.begin_s) for clock, part in sessions), default=inf)
        end_s = max((clock.reference_s(part.end_s) for clock, part in sessions), default=-inf)
        if begin_s > end_s:
            return self
        return replace(self, observed=(max(begin_s, self.grid.begin_s), min(end_s, self.grid.end_s)))

    def clock_of(self, recording: Recording) -> ClockCorrection:
        return self.clocks.get(recording.node, IDENTITY)

    def result(self, run: NodeRun) -> NodeResult[Product]:
        """Return a node's result, including its product."""
        columns = run.columns
        ticks, missed = sum(columns.ticks), sum(columns.missed)
        return NodeResult(run.node, run.head, ticks, missed, columns.integrity, self.make(run))


def catalogue_of(recordings: Sequence[Recording]) -> dict[str, Metric]:
    """Return every metric that occurs in any recording, except those whose meaning differs between recordings."""
    catalogues = [session.head.catalogue for recording in recordings for session in recording.sessions]
    metrics = {name: metric for catalogue in catalogues for name, metric in catalogue.items()}
    differing = {
        name
        for catalogue in catalogues
        for name, metric in catalogue.items()
        if metric.meaning != metrics[name].meaning
    }
    return {name: metric for name, metric in metrics.items() if name not in differing}
