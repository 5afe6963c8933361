"""What the screen shows of one tick: a row for every node and one for all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from exporters.live.live_columns import Cells

ALL = -1
"""Instead of a node's number: the cluster."""


class State(Enum):
    """How a node is."""

    UP = "up"
    CHANGING = "changing"
    """It answers, and is joining, leaving, starting or drained."""
    SILENT = "silent"
    """What watches it answers; Cassandra does not."""
    GONE = "gone"
    """Nothing answers."""
    NEW = "new"
    """Nothing is known yet."""


class ClusterEvent(NamedTuple):
    """An event: when (seconds since the epoch), of which node, what kind, and what is said of it."""

    time_s: float
    node: str
    kind: str
    text: str


@dataclass(frozen=True)
class NodeFrame:
    """A node in a tick.

    why    what is wrong, in a line; "" for nothing.
    age_s  how long ago it, or of a silent one its Cassandra, last answered; None when that is now, or never.
    place  its data centre and rack.
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
    """One tick. A node has the same place in `nodes` in every frame.

    counted  how many nodes the cluster's row is made of.
    tables   of a node by its place, or of ALL: rows as `exporters.line.table_rows` has them, where they were asked for.
    """

    time_s: float
    interval_s: float
    name: str
    nodes: tuple[NodeFrame, ...]
    cluster: Cells
    counted: int
    events: tuple[ClusterEvent, ...] = ()
    tables: Mapping[int, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    running: Mapping[int, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
