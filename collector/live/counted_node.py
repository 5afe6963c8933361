"""The nodes whose samples are merged into that of a cluster, a data centre or a rack."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from collector.merge import aggregation
from collector.merge.aggregation import PartialAggregate, Placement
from collector.model.metric import Series
from collector.model.sample import Sample
from collector.model.snapshot import Tick
from collector.node.catalogue import CATALOGUE


@dataclass(frozen=True)
class CountedNode:
    """A node's part of a merged sample.

    index     the node's index in the interval.
    location  data centre and rack, as `dc/rack`.
    local     whether the node provides only local reads and writes.
    missing   summed gauges that the node reported earlier, but not in this sample.
    """

    index: int
    location: str
    placement: Placement
    local: bool
    sample: Sample
    missing: frozenset[Series]


@dataclass(frozen=True)
class CountedNodes:
    """Nodes and their aggregates, by location; each node is thus aggregated once, however many groups it is part of."""

    by_location: Mapping[str, Collection[CountedNode]]
    aggregates: Mapping[str, PartialAggregate]

    @classmethod
    def of(cls, nodes: Iterable[CountedNode]) -> "CountedNodes":
        """Return the nodes with their aggregates."""
        by_location: dict[str, list[CountedNode]] = {}
        for node in nodes:
            by_location.setdefault(node.location, []).append(node)
        return cls(by_location, {location: _aggregated(members) for location, members in by_location.items()})

    def at(self, locations: Collection[str]) -> list[CountedNode]:
        """Return the nodes at these locations."""
        return [node for location in locations for node in self.by_location.get(location, ())]

    def merged_sample(self, locations: Collection[str], end_s: float) -> Sample:
        """Return the samples of all nodes at these locations, merged into one; shared series are counted once."""
        nodes = self.at(locations)
        if _have_common_machine(self.by_location.get(location, ()) for location in locations):
            total = _aggregated(nodes)
        else:
            parts = [self.aggregates[location] for location in locations if location in self.aggregates]
            total = parts[0] if len(parts) == 1 else aggregation.combined(CATALOGUE, parts)
        missing = frozenset[Series]().union(*(node.missing for node in nodes))
        return total.sample(CATALOGUE, Tick(end_s), missing)


def _aggregated(nodes: Iterable[CountedNode]) -> PartialAggregate:
    once = aggregation.counted_once(CATALOGUE, ((node.placement, node.sample) for node in nodes))
    return aggregation.aggregated(CATALOGUE, once)


def _have_common_machine(groups: Iterable[Collection[CountedNode]]) -> bool:
    """Return whether nodes of different groups run on the same machine."""
    machines = [{node.placement.machine for node in group if node.placement.machine} for group in groups]
    return len(set().union(*machines)) < sum(map(len, machines))
