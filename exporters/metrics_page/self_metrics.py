"""Self-metrics of the agent and its process, exported with prometheus_client."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.registry import Collector

from exporters.metrics_page.agent_health import LATE_S, AgentHealth, JournalHealth, RunTimes, TickHealth
from exporters.metrics_page.metric_family import CUMULATIVE, PLACEMENT, encodable
from exporters.sink_health import SinkHealth

Rows = Mapping[tuple[str, ...], float]


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
        """Yield the current metrics with the identity labels."""
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
    sources = ticking.sources.items()
    label = ("source",)
    yield _gauge(
        "casstat_source_up",
        "Whether the last read of the source succeeded: 1 or 0.",
        label,
        {(name,): float(source.up) for name, source in sources},
    )
    yield _counter(
        "casstat_source_wall_seconds",
        "Time spent reading the source, in seconds.",
        label,
        {(name,): source.wall_s for name, source in sources},
    )
    yield _counter(
        "casstat_source_cpu_seconds",
        "CPU time that the agent spent reading the source, in seconds.",
        label,
        {(name,): source.cpu_s for name, source in sources},
    )
    yield _counter(
        "casstat_source_errors",
        "Number of ticks in which reading the source failed.",
        label,
        {(name,): source.errors for name, source in sources},
    )
    events: Rows = {(kind,): count for kind, count in ticking.events.items()}
    yield _counter("casstat_events", "Number of events by kind.", ("kind",), events)


def _sinks(sinks: Iterable[SinkHealth]) -> Iterator[Metric]:
    by_name = {(sink.name,): sink for sink in sinks}
    label = ("sink",)

    def of(value: Callable[[SinkHealth], float]) -> Rows:
        return {name: float(value(sink)) for name, sink in by_name.items()}

    if not by_name:
        return
    yield _gauge(
        "casstat_sink_up", "Whether the last request to the sink succeeded: 1 or 0.", label, of(lambda s: s.up)
    )
    yield _gauge(
        "casstat_sink_lag_seconds",
        "Time from the last tick sent to the latest tick, in seconds.",
        label,
        of(lambda s: s.lag_s),
    )
    yield _counter("casstat_sink_points", "Number of points accepted by the sink.", label, of(lambda s: s.points))
    yield _counter("casstat_sink_failures", "Number of failed attempts to send.", label, of(lambda s: s.failures))
    yield _counter(
        "casstat_sink_refused_points", "Number of points rejected by the sink.", label, of(lambda s: s.refused_points)
    )
    yield _counter(
        "casstat_sink_lost_ticks", "Number of ticks lost before they could be sent.", label, of(lambda s: s.lost_ticks)
    )


def _runs(runs: Iterable[RunTimes]) -> Iterator[Metric]:
    labels, all_times = ("run", "id"), list(runs)
    if not all_times:
        return
    begun: Rows = {(times.name, times.id): times.begin_s for times in all_times}
    ended: Rows = {(times.name, times.id): times.end_s for times in all_times if times.end_s is not None}
    marked: Rows = {(times.name, times.id, text): time_s for times in all_times for time_s, text in times.marks}
    yield _gauge("casstat_run_begin_time_seconds", "Start time of a run, in seconds since the epoch.", labels, begun)
    yield _gauge("casstat_run_end_time_seconds", "End time of a run, in seconds since the epoch.", labels, ended)
    yield _gauge(
        "casstat_run_mark_time_seconds",
        "Time of a mark in a run, in seconds since the epoch.",
        (*labels, "mark"),
        marked,
    )


def _gauge(name: str, text: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    return _filled(GaugeMetricFamily(name, text, labels=labels), rows)


def _counter(name: str, text: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    return _filled(CounterMetricFamily(name, text, labels=labels), rows)


def _filled(family: CounterMetricFamily | GaugeMetricFamily, rows: Rows) -> Metric:
    for values, value in rows.items():
        family.add_metric(values, value)
    return family
