"""What pictures of a run are made from: rows on one grid of times, buckets, marks, and what is to be said below."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from collector.model.histogram import Buckets

CLUSTER = "cluster"

Row = Mapping[str, float | str | None]
"""One node's columns (see `exporters.line.view`) of one interval."""


@dataclass(frozen=True)
class Mark:
    """Something that happened at a moment: to a node, or "" for all of them."""

    time_s: float
    node: str
    kind: str
    text: str


@dataclass(frozen=True)
class Phase:
    """A part of the run with a name, from one time to another; a warm-up is not to be counted."""

    begin_s: float
    end_s: float
    name: str
    warm_up: bool = False


@dataclass(frozen=True)
class Run:
    """A merged run.

    name      what to call it.
    times     the end of each interval of the grid, seconds since the epoch, ascending, `interval_s` apart.
    rows      by node, CLUSTER among them: one row for each time, None where nothing is known of the node.
    buckets   by operation ("read", "write"): what took how long on all nodes in each interval, None where not known.
    marks     events; phases do not overlap.
    zone_s    offset of the local time from UTC, seconds.
    footer    what is to be known of the figures: versions, interval, samples lost, largest clock error.
    """

    name: str
    interval_s: float
    times: Sequence[float]
    rows: Mapping[str, Sequence[Row | None]]
    buckets: Mapping[str, Sequence[Buckets | None]] = field(default_factory=dict)
    marks: Sequence[Mark] = ()
    phases: Sequence[Phase] = ()
    zone_s: int = 0
    footer: Sequence[str] = ()

    @property
    def nodes(self) -> list[str]:
        """The nodes' names, without the cluster's."""
        return [name for name in self.rows if name != CLUSTER]
