"""How the agent fares, as plain data: what is added up tick by tick, and what others tell of themselves."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from collector.log.log_events import KINDS
from collector.log.log_source import NAME as LOG
from collector.model.snapshot import Event, Scrape, Snapshot
from exporters.shipping.sink_health import SinkHealth

# Kinds of events that are not a log's, and that every agent looks out for.
ALWAYS = ("disagreement", "missed", "no_answer", "restart", "run", "suspended")
LATE_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""The edges of the histogram of how late ticks are."""


@dataclass(frozen=True)
class SourceHealth:
    """One source: whether it was up when it was read last, what it has cost so far, and ticks with a problem."""

    up: bool = True
    wall_s: float = 0.0
    cpu_s: float = 0.0
    errors: int = 0

    def after(self, scrape: Scrape) -> "SourceHealth":
        """Return how it fares after one more tick."""
        up = not scrape.problem or bool(scrape.values)
        return SourceHealth(
            up, self.wall_s + scrape.wall_s, self.cpu_s + scrape.cpu_s, self.errors + (1 if scrape.problem else 0)
        )


@dataclass(frozen=True)
class TickHealth:
    """The ticks so far.

    late_s     of the last one; `late_sum_s` of all.
    late       how many were at most so late, by LATE_S and beyond.
    events     how many there were of each kind; none yet is 0 where somebody looks out for it.
    """

    ticks: int = 0
    missed: int = 0
    late_s: float = 0.0
    late_sum_s: float = 0.0
    late: tuple[int, ...] = (0,) * (len(LATE_S) + 1)
    sources: Mapping[str, SourceHealth] = field(default_factory=lambda: MappingProxyType({}))
    events: Mapping[str, int] = field(default_factory=lambda: MappingProxyType(dict.fromkeys(ALWAYS, 0)))

    def after(self, snapshot: Snapshot, events: Sequence[Event] = ()) -> "TickHealth":
        """Return the same after one more tick, in which these events were seen."""
        tick = snapshot.tick
        place = bisect_left(LATE_S, tick.late_s)
        sources = dict(self.sources)
        for scrape in snapshot.scrapes:
            sources[scrape.source] = sources.get(scrape.source, SourceHealth()).after(scrape)
        return replace(
            self,
            ticks=self.ticks + 1,
            missed=self.missed + tick.missed,
            late_s=tick.late_s,
            late_sum_s=self.late_sum_s + tick.late_s,
            late=(*self.late[:place], self.late[place] + 1, *self.late[place + 1 :]),
            sources=sources,
            events=self._events(snapshot, events),
        )

    def _events(self, snapshot: Snapshot, events: Sequence[Event]) -> Mapping[str, int]:
        read = [scrape.source for scrape in snapshot.scrapes if not scrape.problem]
        new = KINDS - self.events.keys() if LOG in read else frozenset[str]()
        if not (events or new):
            return self.events
        found = {**self.events, **dict.fromkeys(new, 0)}
        for event in events:
            found[event.kind] = found.get(event.kind, 0) + 1
        return found


@dataclass(frozen=True)
class JournalHealth:
    """The journal: ticks that could not be written, files removed for want of room, and its size where it is known."""

    lost_ticks: int = 0
    removed_files: int = 0
    size_bytes: int | None = None


@dataclass(frozen=True)
class RunTimes:
    """A run of a load test: when it began and ended (None while it goes on), and its marks, each with its time."""

    id: str
    name: str
    begin_s: float
    end_s: float | None = None
    marks: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class AgentHealth:
    """What the agent says of itself; None where there is no journal.

    machine  boot id of the machine that the agent reads, and `network` the node's network namespace; "" for unknown.
    """

    version: str
    journal: JournalHealth | None = None
    sinks: tuple[SinkHealth, ...] = ()
    runs: tuple[RunTimes, ...] = ()
    machine: str = ""
    network: str = ""
