"""Self-metrics of the agent and its process: its health as plain data, and as families of prometheus_client."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from itertools import accumulate
from types import MappingProxyType
from typing import Any

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.registry import Collector

from collector.model.snapshot import Event, Scrape, Snapshot
from collector.node.log.log_events import KINDS
from collector.node.log.log_source import NAME as LOG
from exporters.metrics_page.metric_family import CUMULATIVE, PLACEMENT, encodable

# Event kinds that every agent counts from 0, whether or not it reads Cassandra's log.
ALWAYS = ("disagreement", "missed", "no_answer", "restart", "run", "suspended")
LATE_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Upper bounds of the histogram of tick delays, in seconds."""

Rows = Mapping[tuple[str, ...], float]
_FamilyType = CounterMetricFamily | GaugeMetricFamily
_GAUGE, _COUNTER = GaugeMetricFamily, CounterMetricFamily
_CPU_HELP = "CPU time that the agent spent reading the source, in seconds."
_SOURCE_METRICS = (
    (_GAUGE, "casstat_source_up", "Whether the last read of the source succeeded: 1 or 0.", "up"),
    (_COUNTER, "casstat_source_wall_seconds", "Time spent reading the source, in seconds.", "wall_s"),
    (_COUNTER, "casstat_source_cpu_seconds", _CPU_HELP, "cpu_s"),
    (_COUNTER, "casstat_source_errors", "Number of ticks in which reading the source failed.", "errors"),
)
"""For each metric of a source: its kind, its name, its help, and the field of SourceHealth."""
_SINK_METRICS = (
    (_GAUGE, "casstat_sink_up", "Whether the last request to the sink succeeded: 1 or 0.", "up"),
    (_GAUGE, "casstat_sink_lag_seconds", "Time from the last tick sent to the latest tick, in seconds.", "lag_s"),
    (_COUNTER, "casstat_sink_points", "Number of points accepted by the sink.", "points"),
    (_COUNTER, "casstat_sink_failures", "Number of failed attempts to send.", "failures"),
    (_COUNTER, "casstat_sink_refused_points", "Number of points rejected by the sink.", "refused_points"),
    (_COUNTER, "casstat_sink_lost_ticks", "Number of ticks lost before they could be sent.", "lost_ticks"),
)
"""For each metric of a sink: its kind, its name, its help, and the field of SinkHealth."""


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
        errors = self.errors + bool(scrape.problem)
        return SourceHealth(up, self.wall_s + scrape.wall_s, self.cpu_s + scrape.cpu_s, errors)


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

    def content(self) -> dict[str, Any]:
        """Return the totals as values that JSON can represent."""
        sources = {name: list(astuple(source)) for name, source in self.sources.items()}
        return {**vars(self), "late": list(self.late), "sources": sources, "events": dict(self.events)}

    @staticmethod
    def of_content(content: Mapping[str, Any]) -> "TickHealth":
        """Return the totals. Raises TypeError, ValueError or KeyError if they are malformed."""
        late, events = tuple(content["late"]), dict(content["events"])
        sources = {name: SourceHealth(*source) for name, source in dict(content["sources"]).items()}
        health = TickHealth(
            content["ticks"], content["missed"], content["late_s"], content["late_sum_s"], late, sources, events
        )
        figures = [health.ticks, health.missed, health.late_s, health.late_sum_s, *late, *events.values()]
        figures += [figure for source in sources.values() for figure in (source.wall_s, source.cpu_s, source.errors)]
        if len(late) != len(LATE_S) + 1 or not all(isinstance(figure, int | float) for figure in figures):
            raise ValueError("invalid totals")
        return health

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
class SinkHealth:
    """The state of one sink, with totals since the program started.

    up              whether the store accepted the last request.
    lag_s           time by which the store lags behind the newest tick.
    points          number of points that the store accepted.
    failures        number of attempts that failed because the store was unavailable.
    refused_points  number of points that the store refused for good, including those not kept in the dead-letter file.
    lost_ticks      number of ticks lost from the journal before they were sent; an upper bound.
    reason          the current problem in one line, or "".
    """

    name: str
    up: bool = True
    lag_s: float = 0.0
    points: int = 0
    failures: int = 0
    refused_points: int = 0
    lost_ticks: int = 0
    reason: str = ""


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


class SelfMetrics(Collector):
    """Adds the agent's self-metrics to a registry; calls `health` on every collection."""

    def __init__(self, registry: CollectorRegistry, health: Callable[[], AgentHealth]) -> None:
        self._registry = registry
        self._health = health
        self._process = ProcessCollector(registry=None)
        self._ticking = TickHealth()
        self._identity: Mapping[str, str] = {}
        self._time_s: float | None = None
        registry.register(self)

    def text(self, ticking: TickHealth, identity: Mapping[str, str], time_s: float | None, *, openmetrics: bool) -> str:
        """Return the registry as text with the identity labels; OpenMetrics includes the end marker.

        `time_s` is the time of cumulative metrics.
        """
        self._ticking, self._identity, self._time_s = ticking, identity, time_s
        generate = generate_openmetrics if openmetrics else generate_latest
        return generate(self._registry).decode()

    def live_families(self) -> Iterator[Metric]:
        """Yield the metrics that only a running agent knows: its journal, its sinks, the runs, and its process."""
        health = self._health()
        yield from _journal(health.journal) if health.journal else ()
        yield from _sinks(health.sinks)
        yield from _runs(health.runs)
        yield from self._process.collect()

    def describe(self) -> Iterable[Metric]:
        """Return no metrics, because their number and names depend on the sources and sinks."""
        return []

    def collect(self) -> Iterator[Metric]:
        identity, health = self._identity, self._health()
        families = (
            *agent_families(health.version, identity.get("node", ""), health.machine, health.network),
            *(_journal(health.journal) if health.journal else ()),
            *tick_families(self._ticking),
            *_sinks(health.sinks),
            *_runs(health.runs),
            *self._process.collect(),
        )
        for family in families:
            time_s = self._time_s if family.type in CUMULATIVE else None
            family.samples = [
                sample._replace(
                    labels={name: encodable(value) for name, value in {**identity, **sample.labels}.items()},
                    timestamp=time_s,
                )
                for sample in family.samples
            ]
            yield family


def agent_families(version: str, node: str, machine: str, network: str) -> Iterator[Metric]:
    """Yield casstat's version, and the machine and network of a node ("" if unknown)."""
    yield InfoMetricFamily("casstat_build", "Version of casstat.", {"version": version})
    yield InfoMetricFamily(
        PLACEMENT,
        "Machine and network of the node; nodes that share them report the same machine metrics.",
        # An unknown machine gets a unique name, so that no two nodes share it.
        {"machine": machine or f"of {node}", "network": network},
    )


def _journal(journal: JournalHealth) -> Iterator[Metric]:
    lost, removed = float(journal.lost_ticks), float(journal.removed_files)
    yield CounterMetricFamily(
        "casstat_journal_lost_ticks", "Number of ticks that could not be written to the journal.", lost
    )
    yield CounterMetricFamily(
        "casstat_journal_removed_files", "Number of journal files removed to stay within the size limit.", removed
    )
    if journal.size_bytes is not None:
        yield GaugeMetricFamily("casstat_journal_bytes", "Size of the journal in bytes.", float(journal.size_bytes))


def tick_families(ticking: TickHealth) -> Iterator[Metric]:
    """Yield the metrics of an agent's ticks, sources and events."""
    yield CounterMetricFamily("casstat_ticks", "Number of ticks.", ticking.ticks)
    yield CounterMetricFamily("casstat_ticks_missed", "Number of missed ticks.", ticking.missed)
    yield GaugeMetricFamily("casstat_tick_late_seconds", "Delay of the last tick, in seconds.", ticking.late_s)
    ends = [*map(str, LATE_S), "+Inf"]
    yield HistogramMetricFamily(
        "casstat_tick_lateness_seconds",
        "Tick delays, in seconds.",
        list(zip(ends, map(float, accumulate(ticking.late)), strict=True)),
        ticking.late_sum_s,
    )
    yield from _named_families("source", ticking.sources, _SOURCE_METRICS)
    events: Rows = {(kind,): count for kind, count in ticking.events.items()}
    yield _filled(_COUNTER("casstat_events", "Number of events by kind.", labels=("kind",)), events)


def _sinks(sinks: Sequence[SinkHealth]) -> Iterator[Metric]:
    if sinks:
        yield from _named_families("sink", {sink.name: sink for sink in sinks}, _SINK_METRICS)


def _named_families(
    label: str, healths: Mapping[str, object], rows: Sequence[tuple[type[_FamilyType], str, str, str]]
) -> Iterator[Metric]:
    """Yield a family for each row, with a series for each health by its name."""
    for kind, name, text, attribute in rows:
        values: Rows = {(key,): float(getattr(health, attribute)) for key, health in healths.items()}
        yield _filled(kind(name, text, labels=(label,)), values)


def _runs(runs: Sequence[RunTimes]) -> Iterator[Metric]:
    labels = ("run", "id")
    if not runs:
        return
    begun: Rows = {(run.name, run.id): run.begin_s for run in runs}
    ended: Rows = {(run.name, run.id): run.end_s for run in runs if run.end_s is not None}
    marked: Rows = {(run.name, run.id, text): time_s for run in runs for time_s, text in run.marks}
    text = "Start time of a run, in seconds since the epoch."
    yield _filled(_GAUGE("casstat_run_begin_time_seconds", text, labels=labels), begun)
    text = "End time of a run, in seconds since the epoch."
    yield _filled(_GAUGE("casstat_run_end_time_seconds", text, labels=labels), ended)
    text = "Time of a mark in a run, in seconds since the epoch."
    yield _filled(_GAUGE("casstat_run_mark_time_seconds", text, labels=(*labels, "mark")), marked)


def _filled(family: _FamilyType, rows: Rows) -> Metric:
    for values, value in rows.items():
        family.add_metric(values, value)
    return family
