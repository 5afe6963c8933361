"""Samples of all nodes of a cluster in one interval."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from collector.cluster.aggregation import Placement
from collector.model.sample import Sample


class State(Enum):
    """State of a node."""

    UP = "up"
    CHANGING = "changing"
    """Cassandra answers, and is joining, leaving, starting or drained."""
    SILENT = "silent"
    """The agent answers, Cassandra does not."""
    GONE = "gone"
    """Neither Cassandra nor an agent answers."""
    NEW = "new"
    """Not contacted yet."""


class ClusterEvent(NamedTuple):
    """An event of a node; `time_s` is in seconds since the epoch."""

    time_s: float
    node: str
    kind: str
    text: str


def dc_rack(dc: str, rack: str) -> str:
    """Return data centre and rack as `dc/rack`, without unknown parts."""
    return "/".join(filter(None, (dc, rack)))


@dataclass(frozen=True)
class NodeInfo:
    """Properties of a node that its samples do not contain; "" for an unknown one.

    location    data centre and rack, as `dc/rack`.
    local       whether only local reads and writes are available, because the node is read through nodetool.
    interval_s  time between two samples; 0 where unknown.
    machine     boot id of the machine, and `network` the network namespace on it.
    disk        the watched disk, and `interface` the watched network interface.
    """

    cluster: str = ""
    location: str = ""
    local: bool = False
    interval_s: float = 0.0
    machine: str = ""
    network: str = ""
    disk: str = ""
    interface: str = ""

    @property
    def placement(self) -> Placement:
        """Where the node runs."""
        return Placement(self.machine, self.network, self.disk, self.interface)


@dataclass(frozen=True)
class NodeStatus:
    """State and sample of a node in one interval.

    sample      None where the node reported nothing. A node whose own interval is longer than the cluster's keeps its
                last sample until the next one.
    is_current  whether the sample belongs to this interval; only then is it part of the cluster's sample.
    reason      the problem in one line, or "".
    age_s       time since the node last answered (for a silent node, since its Cassandra did); None for now or never.
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

    name     of the cluster; "" where it is unknown or the nodes disagree.
    cluster  the nodes' samples merged.
    counted  number of nodes in `cluster` whose Cassandra answers.
    local    whether only local reads and writes are available for all of them.
    """

    end_s: float
    interval_s: float
    name: str
    nodes: tuple[NodeStatus, ...]
    cluster: Sample
    counted: int
    local: bool
    events: tuple[ClusterEvent, ...] = ()
