"""The numbers that the screen shows of one interval: a row for every node and one for the cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from collector.cluster.live.cluster_interval import ClusterEvent, State
from exporters.live.live_columns import Cells

ALL = -1
"""The cluster, where a node's index is expected."""

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class NodeFrame:
    """A node's row.

    why    what is wrong, in one line; "" for nothing.
    age_s  time since the node, or the Cassandra of a silent one, last answered; None for now or never.
    place  data centre and rack, as `dc/rack`.
    """

    __slots__ = ("age_s", "cells", "name", "place", "state", "why")
    name: str
    state: State
    cells: Cells
    why: str
    age_s: float | None
    place: str


@dataclass(frozen=True)
class Frame:
    """One interval. A node has the same index in `nodes` in every frame.

    counted  number of nodes in the cluster's row.
    tables   rows of `exporters.line.table_rows` by node index or ALL, where they were requested.
    running  the running compactions, likewise.
    """

    time_s: float
    interval_s: float
    name: str
    nodes: tuple[NodeFrame, ...]
    cluster: Cells
    counted: int
    events: tuple[ClusterEvent, ...] = ()
    tables: Mapping[int, Rows] = field(default_factory=dict)
    running: Mapping[int, Rows] = field(default_factory=dict)
