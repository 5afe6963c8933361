"""The values of one interval for display: a row for every node and one for the cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from collector.live.cluster_interval import ClusterEvent, State
from exporters.live.live_columns import Cells

ALL = -1
"""Used in place of a node's index to stand for the whole cluster."""

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class NodeFrame:
    """A node's row.

    reason    the problem in one line, or "".
    age_s     time since the node last answered, or, in the state SILENT, since its Cassandra last answered; None if it
              is answering now or has never answered.
    location  data centre and rack, as `dc/rack`.
    """

    __slots__ = ("age_s", "cells", "location", "name", "reason", "state")
    name: str
    state: State
    cells: Cells
    reason: str
    age_s: float | None
    location: str


@dataclass(frozen=True)
class GroupFrame:
    """The row of a data centre or of a rack.

    nodes    the indices of its nodes.
    counted  number of nodes whose values the row includes.
    """

    nodes: tuple[int, ...]
    cells: Cells
    counted: int


@dataclass(frozen=True)
class Frame:
    """One interval. A node has the same index in `nodes` in every frame.

    counted  number of nodes whose values the cluster's row includes.
    tables   rows of `exporters.rows.table_rows`, keyed by node index or ALL; only those requested.
    running  the running compactions, with the same keys.
    groups   the data centres and racks, only if requested; keyed by `dc` or `dc/rack`, or by "" if they are unknown.
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
    groups: Mapping[str, GroupFrame] = field(default_factory=dict)


def locations_of(location: str) -> tuple[str, ...]:
    """Return the groups that a node belongs to, given its location: its data centre and, if known, its rack."""
    dc = location.partition("/")[0]
    return (dc,) if dc == location else (dc, location)
