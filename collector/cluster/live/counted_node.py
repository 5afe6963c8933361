"""The nodes whose samples are merged into that of a cluster, a data centre or a rack."""

from collections.abc import Sequence
from dataclasses import dataclass

from collector.catalogue import CATALOGUE
from collector.cluster import aggregation
from collector.cluster.aggregation import Placement
from collector.model.metric import Series
from collector.model.sample import Sample
from collector.model.snapshot import Tick


@dataclass(frozen=True)
class CountedNode:
    """A node's part of a merged sample.

    index    the node's index in the interval.
    local    whether the node provides only local reads and writes.
    missing  summed gauges that the node reported earlier, but not in this sample.
    """

    index: int
    placement: Placement
    local: bool
    sample: Sample
    missing: frozenset[Series]


def merged_sample(nodes: Sequence[CountedNode], end_s: float) -> Sample:
    """Return the nodes' samples merged into one; series that nodes share are counted once."""
    missing = frozenset[Series]().union(*(node.missing for node in nodes))
    once = aggregation.counted_once(CATALOGUE, ((node.placement, node.sample) for node in nodes))
    return aggregation.merged(CATALOGUE, once, Tick(end_s), missing)
