"""What is read of a node: scrapes of its sources, and all of them in one tick as a snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from collector.model.metric import Series, Value

TIME_UNITS_PER_S = 1e5
COST_UNITS_PER_S = 1e4
"""Resolution of times (10 µs) and of costs (0.1 ms). The journal stores whole units."""


class SourceError(Exception):
    """A source could not be read this time; the message says what, where and what to do, in one line."""


@dataclass(frozen=True)
class Event:
    """Something worth a word in its row, such as a restart; `kind` is one of a few fixed words.

    time_s   when it happened, seconds since the epoch, where the event says so itself (a log's line does).
    """

    kind: str
    text: str
    time_s: float | None = None


@dataclass(frozen=True)
class Scrape:
    """What one source read in one tick.

    at_s      monotonic time at which the source finished: rates divide by differences of it.
    origin    what its counters count from, such as a process' start: no rate spans two of them; "" where not known.
    problem   why there are no values (or not all of them), in one line; "" when all is well.
    events    what the source saw happen since the tick before.
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
    """One point of the clock's grid.

    time_s   wall time of the grid point, seconds since the epoch.
    late_s   how long after it the tick really began.
    missed   grid points that passed without a tick since the one before.
    suspended_s  how long the machine slept since the one before.
    """

    time_s: float
    late_s: float = 0.0
    missed: int = 0
    suspended_s: float = 0.0


@dataclass(frozen=True)
class Snapshot:
    """Everything read of one node in one tick."""

    node: str
    tick: Tick
    scrapes: tuple[Scrape, ...]


def with_rounded_times(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot at the journal's resolution, so that live rows equal those replayed from a recording."""
    scrapes = tuple(
        Scrape(
            scrape.source,
            _rounded(scrape.at_s, TIME_UNITS_PER_S),
            scrape.values,
            scrape.origin,
            scrape.problem,
            scrape.events,
            _rounded(scrape.wall_s, COST_UNITS_PER_S),
            _rounded(scrape.cpu_s, COST_UNITS_PER_S),
        )
        for scrape in snapshot.scrapes
    )
    tick = snapshot.tick
    late_s, suspended_s = _rounded(tick.late_s, TIME_UNITS_PER_S), _rounded(tick.suspended_s, TIME_UNITS_PER_S)
    return Snapshot(snapshot.node, replace(tick, late_s=late_s, suspended_s=suspended_s), scrapes)


def _rounded(seconds: float, units_per_s: float) -> float:
    return round(seconds * units_per_s) / units_per_s
