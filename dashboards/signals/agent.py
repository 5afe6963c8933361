"""casstat itself: the cost, gaps and losses of its agents. Prometheus only: see `exporters.prometheus.self_metrics`."""

from collector.model.metric import Aggregation
from dashboards.expression import Difference, Expression, Gauge, Quantile, Rate, where
from dashboards.signals.signal import Signal, Unit

SINK = "Absent for an agent without sinks."
JOURNAL = "Absent for an agent that keeps no journal."


def _source(
    name: str, title: str, expression: Expression, unit: Unit, text: str, *, low_is_worse: bool = False
) -> Signal:
    return Signal(name, title, expression, unit, text, ("source",), low_is_worse=low_is_worse)


def _sink(
    name: str, title: str, expression: Expression, unit: Unit, text: str, *, low_is_worse: bool = False
) -> Signal:
    return Signal(name, title, expression, unit, text, ("sink",), SINK, low_is_worse=low_is_worse)


SIGNALS = (
    Signal(
        "node_answers",
        "Cassandra answers its agent",
        Gauge("casstat_source_up", where(source="cassandra"), Aggregation.MIN),
        Unit.COUNT,
        "1 where Cassandra answers its agent, 0 where it does not.",
        absent="Absent where nodetool is asked instead of Jolokia.",
        low_is_worse=True,
    ),
    Signal(
        "tick_late_p99",
        "Tick lateness, p99",
        Quantile(0.99, "casstat_tick_lateness_seconds"),
        Unit.SECONDS,
        "How late ticks begin: a late tick covers a longer interval, and the machine is short of processors.",
    ),
    Signal(
        "ticks_missed",
        "Missed ticks",
        Rate("casstat_ticks_missed_total"),
        Unit.PER_S,
        "Intervals without a sample: the one after them covers them too.",
    ),
    Signal("ticks", "Ticks", Rate("casstat_ticks_total"), Unit.PER_S, "Samples that the agents take."),
    _source(
        "source_up",
        "Source up",
        Gauge("casstat_source_up", aggregation=Aggregation.MIN),
        Unit.COUNT,
        "1 for a source that answers, 0 for one that does not: its metrics are absent.",
        low_is_worse=True,
    ),
    _source(
        "source_errors",
        "Source errors",
        Rate("casstat_source_errors_total"),
        Unit.PER_S,
        "Ticks in which a source had a problem; the agent's log says which.",
    ),
    _source(
        "source_cpu",
        "Source CPU usage",
        Rate("casstat_source_cpu_seconds_total"),
        Unit.COUNT,
        "Processors that the agent itself uses to read a source.",
    ),
    _source(
        "source_wall",
        "Source read time",
        Rate("casstat_source_wall_seconds_total"),
        Unit.RATIO,
        "Share of the time in which a source is being read; the node's answer is waited for in it.",
    ),
    _sink(
        "sink_up",
        "Sink up",
        Gauge("casstat_sink_up", aggregation=Aggregation.MIN),
        Unit.COUNT,
        "1 for yes, 0 for no.",
        low_is_worse=True,
    ),
    _sink(
        "sink_lag",
        "Sink lag",
        Gauge("casstat_sink_lag_seconds", aggregation=Aggregation.MAX),
        Unit.SECONDS,
        "Age of the oldest tick that the store lacks: it is sent when the store is back.",
    ),
    _sink(
        "sink_points", "Sent points", Rate("casstat_sink_points_total"), Unit.PER_S, "Points that stores have taken."
    ),
    _sink(
        "sink_failures", "Failed sink requests", Rate("casstat_sink_failures_total"), Unit.PER_S, "They are repeated."
    ),
    _sink(
        "sink_refused",
        "Refused points",
        Rate("casstat_sink_refused_points_total"),
        Unit.PER_S,
        "Points that the store will never take; they are in the folder of the agent's journal.",
    ),
    _sink(
        "sink_lost",
        "Lost ticks per sink",
        Rate("casstat_sink_lost_ticks_total"),
        Unit.PER_S,
        "Ticks that the journal had no room for until the store was back.",
    ),
    Signal(
        "journal_lost",
        "Ticks not written to the journal",
        Rate("casstat_journal_lost_ticks_total"),
        Unit.PER_S,
        "Ticks that could not be written: the disk is full, or fails.",
        absent=JOURNAL,
    ),
    Signal(
        "journal_removed",
        "Removed journal files",
        Rate("casstat_journal_removed_files_total"),
        Unit.PER_S,
        "The oldest files go when the journal is as large as it may be.",
        absent=JOURNAL,
    ),
    Signal(
        "journal_bytes",
        "Journal size",
        Gauge("casstat_journal_bytes", aggregation=Aggregation.SUM),
        Unit.BYTES,
        "What the recordings take on the nodes' disks.",
        absent=JOURNAL,
    ),
    Signal(
        "series_left",
        "Remaining series budget",
        Difference(
            Gauge("casstat_series_limit", aggregation=Aggregation.MIN),
            Gauge("casstat_series", aggregation=Aggregation.MAX),
        ),
        Unit.COUNT,
        "Series that an agent may serve beyond those that it does: at none it leaves out whole metrics.",
        low_is_worse=True,
    ),
    Signal(
        "agent_cpu",
        "Agent CPU usage",
        Rate("process_cpu_seconds_total"),
        Unit.COUNT,
        "0.01 is a hundredth of one processor.",
    ),
    Signal(
        "agent_memory",
        "Agent memory",
        Gauge("process_resident_memory_bytes", aggregation=Aggregation.SUM),
        Unit.BYTES,
        "Memory that is in RAM.",
    ),
    Signal(
        "agent_files",
        "Agent open files",
        Gauge("process_open_fds", aggregation=Aggregation.MAX),
        Unit.COUNT,
        "Open file descriptors.",
    ),
    Signal(
        "agent_events",
        "Events",
        Rate("casstat_events_total"),
        Unit.PER_S,
        "What befell the nodes: restarts, collections, flushes, compactions, and what their logs tell of.",
        ("kind",),
        "Absent until something happened.",
    ),
)
