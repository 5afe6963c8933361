"""Signals for the agents' self-metrics: ticks, sources, sinks, the journal and cost.

Only Prometheus receives these metrics: see `exporters.metrics_page.self_metrics`.
"""

from functools import partial

from collector.model.metric import Aggregation
from dashboards.expression import Difference, Gauge, Quantile, Rate, where
from dashboards.signals.signal import Signal, Unit

SINK = "Absent for an agent without sinks."
JOURNAL = "Absent for an agent without a journal."

_source = partial(Signal, labels=("source",))
_sink = partial(Signal, labels=("sink",), absent=SINK)

SIGNALS = (
    Signal(
        "node_answers",
        "Cassandra up",
        Gauge("casstat_source_up", where(source="cassandra"), Aggregation.MIN),
        Unit.COUNT,
        "1 while Cassandra answers its agent, 0 while it does not.",
        absent="Absent for a node that is read through nodetool.",
        low_is_worse=True,
    ),
    Signal(
        "tick_late_p99",
        "Tick lateness, p99",
        Quantile(0.99, "casstat_tick_lateness_seconds"),
        Unit.SECONDS,
        "Delay of a tick's start. A late tick covers a longer interval; the usual cause is a lack of CPU time.",
    ),
    Signal(
        "ticks_missed",
        "Missed ticks",
        Rate("casstat_ticks_missed_total"),
        Unit.PER_S,
        "Intervals without a sample. The next sample covers them too.",
    ),
    Signal("ticks", "Ticks", Rate("casstat_ticks_total"), Unit.PER_S, "Samples that the agents take per second."),
    _source(
        "source_up",
        "Source up",
        Gauge("casstat_source_up", aggregation=Aggregation.MIN),
        Unit.COUNT,
        "1 while a source answers; 0 while it does not, in which case its metrics are absent.",
        low_is_worse=True,
    ),
    _source(
        "source_errors",
        "Source errors",
        Rate("casstat_source_errors_total"),
        Unit.PER_S,
        "Ticks in which a source failed. The agent's log contains the errors.",
    ),
    _source(
        "source_cpu",
        "Source CPU usage",
        Rate("casstat_source_cpu_seconds_total"),
        Unit.COUNT,
        "CPU time per second that the agent spends reading a source; 1 is one core.",
    ),
    _source(
        "source_wall",
        "Source read time",
        Rate("casstat_source_wall_seconds_total"),
        Unit.RATIO,
        "Fraction of the time that the agent spends reading a source, including the wait for the node's response.",
    ),
    _sink(
        "sink_up",
        "Sink up",
        Gauge("casstat_sink_up", aggregation=Aggregation.MIN),
        Unit.COUNT,
        "1 while the store accepts data, 0 while it does not.",
        low_is_worse=True,
    ),
    _sink(
        "sink_lag",
        "Sink lag",
        Gauge("casstat_sink_lag_seconds", aggregation=Aggregation.MAX),
        Unit.SECONDS,
        "Time from the last tick sent to the latest tick. It grows while the store is unavailable or too slow.",
    ),
    _sink(
        "sink_points", "Sent points", Rate("casstat_sink_points_total"), Unit.PER_S, "Points that the stores accepted."
    ),
    _sink(
        "sink_failures",
        "Failed sink requests",
        Rate("casstat_sink_failures_total"),
        Unit.PER_S,
        "Failed requests, which the agent retries.",
    ),
    _sink(
        "sink_refused",
        "Rejected points",
        Rate("casstat_sink_refused_points_total"),
        Unit.PER_S,
        "Points that the store permanently rejected. The agent appends them to size-limited dead-letter files.",
    ),
    _sink(
        "sink_lost",
        "Lost ticks per sink",
        Rate("casstat_sink_lost_ticks_total"),
        Unit.PER_S,
        "Ticks lost before the store accepted them, usually because the journal reached its size limit.",
    ),
    Signal(
        "journal_lost",
        "Ticks not written to the journal",
        Rate("casstat_journal_lost_ticks_total"),
        Unit.PER_S,
        "Ticks that could not be written, usually because the disk is full or failing.",
        absent=JOURNAL,
    ),
    Signal(
        "journal_removed",
        "Removed journal files",
        Rate("casstat_journal_removed_files_total"),
        Unit.PER_S,
        "The agent removes the oldest files when the journal reaches its size limit.",
        absent=JOURNAL,
    ),
    Signal(
        "journal_bytes",
        "Journal size",
        Gauge("casstat_journal_bytes", aggregation=Aggregation.SUM),
        Unit.BYTES,
        "Disk space used by the recordings.",
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
        "Series that an agent may serve in addition to the current ones. Beyond the limit, it omits whole metrics.",
        low_is_worse=True,
    ),
    Signal(
        "agent_cpu",
        "Agent CPU usage",
        Rate("process_cpu_seconds_total"),
        Unit.COUNT,
        "CPU time per second; 0.01 is 1% of a core.",
    ),
    Signal(
        "agent_memory",
        "Agent memory",
        Gauge("process_resident_memory_bytes", aggregation=Aggregation.SUM),
        Unit.BYTES,
        "Resident memory.",
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
        "Events by kind, such as restarts and missed ticks; with `--log`, also events from Cassandra's log.",
        ("kind",),
        "Absent if the agent is down or has not reached the node yet.",
    ),
)
