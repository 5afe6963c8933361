"""Ticks, events, scrapes of a node's sources, and snapshots, which contain all scrapes of one tick."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from collector.model.metric import Series, Value

# The names, in scrapes and recordings, of the sources that provide a node's read and write counts.
JOLOKIA_SOURCE = "cassandra"
NODETOOL_OPERATIONS_SOURCE = "nodetool tablestats"
TIME_UNITS_PER_S = 1e5
COST_UNITS_PER_S = 1e4
"""The journal stores times and costs as integers, in units of 10 µs and 0.1 ms, respectively."""


class SourceError(Exception):
    """A source could not be read in this tick. The message is one line: context, cause and possibly a hint."""


@dataclass(frozen=True)
class Event:
    """An event that is reported in a row of its own, such as a restart.

    kind    the type of event, one of a fixed set.
    time_s  the event's own time in seconds since the epoch, for example from a log line; None for most kinds.
    """

    kind: str
    text: str
    time_s: float | None = None


@dataclass(frozen=True)
class Scrape:
    """The values that one source returned in one tick.

    at_s      monotonic time at which the source finished; rates cover the time between two scrapes' `at_s`.
    origin    identifies the process or device that the counters belong to; no rate spans two origins. "" if unknown.
    problem   the reason for missing values, in one line; "" if no values are missing.
    events    events since the previous tick.
    wall_s    time spent reading the source.
    cpu_s     CPU time spent reading the source.
    """

    source: str
    at_s: float
    values: Mapping[Series, Value] = field(default_factory=dict)
    origin: str = ""
    problem: str = ""
    events: tuple[Event, ...] = ()
    wall_s: float = 0.0
    cpu_s: float = 0.0


@dataclass(frozen=True)
class Tick:
    """One point of the time grid.

    time_s       wall time of the point, in seconds since the epoch.
    late_s       delay between the point and the actual start of the tick.
    missed       number of points skipped since the previous tick.
    suspended_s  how long the machine was suspended between the previous tick and this one.
    """

    time_s: float
    late_s: float = 0.0
    missed: int = 0
    suspended_s: float = 0.0


NEVER = Tick(0.0)
"""The tick of a sample whose time does not matter."""


@dataclass(frozen=True)
class Snapshot:
    """All scrapes of one node in one tick."""

    node: str
    tick: Tick
    scrapes: tuple[Scrape, ...]


def with_rounded_times(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot at the journal's resolution, so that live rows equal those replayed from a recording."""
    scrapes = tuple(
        replace(
            scrape,
            at_s=_rounded(scrape.at_s, TIME_UNITS_PER_S),
            wall_s=_rounded(scrape.wall_s, COST_UNITS_PER_S),
            cpu_s=_rounded(scrape.cpu_s, COST_UNITS_PER_S),
        )
        for scrape in snapshot.scrapes
    )
    tick = snapshot.tick
    late_s, suspended_s = _rounded(tick.late_s, TIME_UNITS_PER_S), _rounded(tick.suspended_s, TIME_UNITS_PER_S)
    return Snapshot(snapshot.node, replace(tick, late_s=late_s, suspended_s=suspended_s), scrapes)


def _rounded(seconds: float, units_per_s: float) -> float:
    return round(seconds * units_per_s) / units_per_s
