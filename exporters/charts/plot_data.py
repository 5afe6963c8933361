"""The run that plots show: rows on a common time grid, buckets, marks and the footer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from collector.load_results.client_result import Latency
from collector.model.histogram import Buckets

CLUSTER = "cluster"

Row = Mapping[str, float | str | None]
"""A node's cells for one interval, keyed by column name (see `exporters.rows.view`)."""


@dataclass(frozen=True)
class Mark:
    """An event on a node at one moment. If `node` is "", the event concerns all nodes."""

    time_s: float
    node: str
    kind: str
    text: str


@dataclass(frozen=True)
class Phase:
    """A named part of the run. If it is a warm-up, plots exclude it from their totals."""

    begin_s: float
    end_s: float
    name: str
    warm_up: bool = False


@dataclass(frozen=True)
class ClientSeries:
    """What the clients of a run saw; unknown values are None, and kinds of latency without values are left out.

    times          the end of each of the clients' intervals, ascending; their lengths may differ.
    mean_ms        mean latency, keyed by kind of latency ("response", "service").
    p99_ms         keyed by kind of latency.
    distributions  keyed by kind of latency: the latencies of all operations outside the warm-up, as counts.
    """

    times: Sequence[float] = ()
    ops_per_s: Sequence[float | None] = ()
    mean_ms: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    p99_ms: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    distributions: Mapping[str, Latency] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """A merged run.

    name      the run's name, which is also the title of its plots.
    times     the end of each interval of the grid, in seconds since the epoch, ascending and `interval_s` apart.
    rows      keyed by node, including CLUSTER: one row for each time, None where the node has no data.
    buckets   keyed by `Operation.word`, such as "read": each interval's merged latency histogram, None where unknown.
    marks     events to mark along the time axis.
    phases    named parts of the run, which do not overlap.
    zone_s    offset of local time from UTC, in seconds.
    footer    versions, interval, lost samples, largest clock error.
    clients   only if several runs are overlaid: keyed by run, without runs that have no client results.
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
    clients: Mapping[str, ClientSeries] = field(default_factory=dict)

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes, excluding CLUSTER."""
        return [name for name in self.rows if name != CLUSTER]
