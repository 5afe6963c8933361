"""One interval of a live cluster: the state and sample of each node, their merged sample, and the events."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from collector.merge import aggregation
from collector.merge.aggregation import PartialAggregate
from collector.model.metric import Series
from collector.model.snapshot import NOWHERE, Placement, Sample, Tick
from collector.node.catalogue import CATALOGUE


class State(Enum):
    """Whether Cassandra, or at least an agent, is answering on a node."""

    UP = "up"
    CHANGING = "changing"
    """Cassandra is answering, but is joining, leaving, starting or drained."""
    SILENT = "silent"
    """The agent is answering, but Cassandra is not."""
    GONE = "gone"
    """Neither Cassandra nor an agent is answering."""
    NEW = "new"
    """No sample or failure has arrived yet."""


class ClusterEvent(NamedTuple):
    """An event on a node; `time_s` is in seconds since the epoch."""

    time_s: float
    node: str
    kind: str
    text: str


def dc_rack(dc: str, rack: str) -> str:
    """Return the data centre and rack as `dc/rack`, omitting unknown parts."""
    return "/".join(filter(None, (dc, rack)))


@dataclass(frozen=True)
class NodeInfo:
    """Node properties that the node's samples do not contain; "" if unknown.

    location    data centre and rack, as `dc/rack`.
    local       whether only local reads and writes are available, as with nodetool.
    interval_s  time between two samples; 0 if unknown.
    """

    cluster: str = ""
    location: str = ""
    local: bool = False
    interval_s: float = 0.0
    placement: Placement = NOWHERE


@dataclass(frozen=True)
class CountedNode:
    """A node's part of a merged sample.

    index    the node's index in the interval.
    missing  summed gauges that the node reported earlier, but not in this sample.
    """

    index: int
    info: NodeInfo
    sample: Sample
    missing: frozenset[Series]


@dataclass(frozen=True)
class CountedNodes:
    """Nodes and their aggregates, by location; each node is thus aggregated once, however many groups it is part of."""

    by_location: Mapping[str, Collection[CountedNode]]
    aggregates: Mapping[str, PartialAggregate]

    @classmethod
    def of(cls, nodes: Iterable[CountedNode]) -> "CountedNodes":
        by_location: dict[str, list[CountedNode]] = {}
        for node in nodes:
            by_location.setdefault(node.info.location, []).append(node)
        return cls(by_location, {location: _aggregated(members) for location, members in by_location.items()})

    def at(self, locations: Collection[str]) -> list[CountedNode]:
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
    once = aggregation.counted_once(CATALOGUE, ((node.info.placement, node.sample) for node in nodes))
    return aggregation.aggregated(CATALOGUE, once)


def _have_common_machine(groups: Iterable[Collection[CountedNode]]) -> bool:
    """Return whether nodes of different groups run on the same machine."""
    machines = [{node.info.placement.machine for node in group} - {""} for group in groups]
    return len(set().union(*machines)) < sum(map(len, machines))


@dataclass(frozen=True)
class NodeStatus:
    """A node's state and sample in one interval.

    sample      the sample, or None if the node reported nothing. A node whose own interval is longer than the
                cluster's keeps its last sample until the next one arrives.
    is_current  whether the sample belongs to this interval; only then is it part of the cluster's sample.
    reason      the problem as one line, or "".
    age_s       time since the node last answered (for a silent node, since Cassandra last answered); None if it is
                answering now or has never answered.
    """

    name: str
    info: NodeInfo
    state: State
    sample: Sample | None
    is_current: bool
    reason: str
    age_s: float | None


@dataclass(frozen=True)
class ClusterInterval:
    """One interval of a cluster. A node has the same index in `nodes` in every interval.

    name           the cluster's name; "" if it is unknown or the nodes disagree.
    cluster        the nodes' samples, merged into one.
    counted_nodes  the nodes whose samples `cluster` contains.
    """

    end_s: float
    interval_s: float
    name: str
    nodes: tuple[NodeStatus, ...]
    cluster: Sample
    counted_nodes: CountedNodes
    events: tuple[ClusterEvent, ...] = ()

    @property
    def counted(self) -> int:
        """The number of nodes in `cluster` on which Cassandra is answering."""
        return self.answering(self.counted_nodes.at(self.counted_nodes.by_location))

    def answering(self, nodes: Iterable[CountedNode]) -> int:
        """Return on how many of these nodes Cassandra is answering."""
        return sum(self.nodes[node.index].state in (State.UP, State.CHANGING) for node in nodes)
