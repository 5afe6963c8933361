"""Health of the agent as plain data: ticks, sources, journal, sinks and runs."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from collector.model.snapshot import Event, Scrape, Snapshot
from collector.node.log.log_events import KINDS
from collector.node.log.log_source import NAME as LOG
from exporters.sink_health import SinkHealth

# Event kinds that every agent counts from 0, whether or not it reads Cassandra's log.
ALWAYS = ("disagreement", "missed", "no_answer", "restart", "run", "suspended")
LATE_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Upper bounds of the histogram of tick delays, in seconds."""


@dataclass(frozen=True)
class SourceHealth:
    """Health of a source.

    up              whether its last read returned values or reported no problem.
    wall_s, cpu_s   total time and CPU time of its reads.
    errors          number of reads that reported a problem.
    """

    up: bool = True
    wall_s: float = 0.0
    cpu_s: float = 0.0
    errors: int = 0

    def after(self, scrape: Scrape) -> "SourceHealth":
        """Return the health after one more scrape."""
        up = not scrape.problem or bool(scrape.values)
        return SourceHealth(
            up, self.wall_s + scrape.wall_s, self.cpu_s + scrape.cpu_s, self.errors + (1 if scrape.problem else 0)
        )


@dataclass(frozen=True)
class TickHealth:
    """Totals over all ticks.

    late_s      delay of the last tick, in seconds; `late_sum_s` is the sum over all ticks.
    late        number of ticks in each bucket of LATE_S, and above its last bound.
    events      number of events of each kind; 0 for exported kinds that have not occurred yet.
    """

    ticks: int = 0
    missed: int = 0
    late_s: float = 0.0
    late_sum_s: float = 0.0
    late: tuple[int, ...] = (0,) * (len(LATE_S) + 1)
    sources: Mapping[str, SourceHealth] = field(default_factory=lambda: MappingProxyType({}))
    events: Mapping[str, int] = field(default_factory=lambda: MappingProxyType(dict.fromkeys(ALWAYS, 0)))

    def after(self, snapshot: Snapshot, events: Sequence[Event] = ()) -> "TickHealth":
        """Return the totals after one more tick with these events."""
        tick = snapshot.tick
        bucket_index = bisect_left(LATE_S, tick.late_s)
        sources = dict(self.sources)
        for scrape in snapshot.scrapes:
            sources[scrape.source] = sources.get(scrape.source, SourceHealth()).after(scrape)
        return replace(
            self,
            ticks=self.ticks + 1,
            missed=self.missed + tick.missed,
            late_s=tick.late_s,
            late_sum_s=self.late_sum_s + tick.late_s,
            late=(*self.late[:bucket_index], self.late[bucket_index] + 1, *self.late[bucket_index + 1 :]),
            sources=sources,
            events=self._events(snapshot, events),
        )

    def _events(self, snapshot: Snapshot, events: Sequence[Event]) -> Mapping[str, int]:
        read = [scrape.source for scrape in snapshot.scrapes if not scrape.problem]
        new = KINDS - self.events.keys() if LOG in read else frozenset[str]()
        if not (events or new):
            return self.events
        counts = {**self.events, **dict.fromkeys(new, 0)}
        for event in events:
            counts[event.kind] = counts.get(event.kind, 0) + 1
        return counts


@dataclass(frozen=True)
class JournalHealth:
    """Health of the journal: lost ticks, files removed to stay within the size limit, and its size if known."""

    lost_ticks: int = 0
    removed_files: int = 0
    size_bytes: int | None = None


@dataclass(frozen=True)
class RunTimes:
    """Times of a load test run: begin, end (None while it is running), and its marks with their times."""

    id: str
    name: str
    begin_s: float
    end_s: float | None = None
    marks: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class AgentHealth:
    """Health of the agent.

    journal  None if the agent keeps no journal.
    machine  boot id of the node's machine; "" if unknown.
    network  network namespace of the node; "" if unknown.
    """

    version: str
    journal: JournalHealth | None = None
    sinks: tuple[SinkHealth, ...] = ()
    runs: tuple[RunTimes, ...] = ()
    machine: str = ""
    network: str = ""
