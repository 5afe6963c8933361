"""What a merge takes and returns: the job, each node's run and result, and the merged run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from collector.cluster.cluster_sample import ClusterSample
from collector.cluster.grid import Grid, NodeInterval
from collector.cluster.recordings import Recording
from collector.journal.header import Header
from collector.journal.read_limits import MAX_SERIES
from collector.journal.tick_order import Integrity
from collector.model.metric import Metric, Series

DEFAULT_S = 5.0
"""The usual interval of a merged run."""
Product = TypeVar("Product")


@dataclass(frozen=True)
class NodeRun:
    """One node on the grid.

    intervals  by index; nothing is known of the node in an interval that is missing.
    integrity  what is wrong with the node's files.
    """

    node: str
    head: Header
    intervals: Mapping[int, NodeInterval]
    integrity: Integrity = Integrity()  # noqa: RUF009 - it is frozen


@dataclass(frozen=True)
class NodeResult(Generic[Product]):
    """What a merge keeps of a node; `product` is what the job made of its intervals."""

    node: str
    head: Header
    ticks: int
    missed: int
    integrity: Integrity
    product: Product


@dataclass(frozen=True)
class Merged(Generic[Product]):
    """A merged run: every node, and the cluster by interval. `indices` are those of the first to the last interval."""

    grid: Grid
    nodes: tuple[NodeResult[Product], ...]
    cluster: Mapping[int, ClusterSample]
    indices: range


@dataclass(frozen=True)
class Job(Generic[Product]):
    """How to merge recordings.

    offsets     seconds by which each node's clock is ahead.
    wanted      the metrics, and single series of other metrics, that `make` needs.
    make        builds the product of one node; it may run in another process.
    max_series  the highest number of series of a node.
    """

    grid: Grid
    offsets: Mapping[str, float]
    wanted: frozenset[str | Series]
    make: Callable[[NodeRun], Product]
    max_series: int = MAX_SERIES

    def result(self, run: NodeRun) -> NodeResult[Product]:
        """Return what the merge keeps of a node."""
        ticks = sum(interval.ticks for interval in run.intervals.values())
        missed = sum(interval.sample.tick.missed for interval in run.intervals.values())
        return NodeResult(run.node, run.head, ticks, missed, run.integrity, self.make(run))


def catalogue_of(recordings: Sequence[Recording]) -> dict[str, Metric]:
    """Return the metrics of all recordings, without those whose meaning differs between recordings."""
    catalogues = [session.head.catalogue for recording in recordings for session in recording.sessions]
    metrics = {name: metric for catalogue in catalogues for name, metric in catalogue.items()}
    differing = {
        name
        for catalogue in catalogues
        for name, metric in catalogue.items()
        if metric.meaning != metrics[name].meaning
    }
    return {name: metric for name, metric in metrics.items() if name not in differing}
