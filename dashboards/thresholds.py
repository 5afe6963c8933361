"""From when on a signal is worth a warning, and from when on somebody must get up: for panels and alerts alike."""

from dataclasses import dataclass

MB = 1e6
MIN_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0


@dataclass(frozen=True)
class Threshold:
    """Of one signal, in its unit; None where there is none.

    for_s  how long it must last: nobody is woken by a peak.
    below  whether it is low values that are bad.
    """

    warning: float | None
    critical: float | None = None
    for_s: float = 600.0
    below: bool = False


@dataclass(frozen=True)
class Objective:
    """What clients are promised: the share `share` of an operation's requests takes no longer than `bound_s`.

    bound_s  one of the edges that the agent's histograms have: `exporters.prometheus.edges.DEFAULT_S`.
    """

    operation: str
    bound_s: float
    share: float


OBJECTIVES = {"read_burn": Objective("Read", 0.1, 0.99), "write_burn": Objective("Write", 0.05, 0.99)}

# By the names of `dashboards.signals`; those below, which no panel shows as they are, by the alerts' own.
THRESHOLDS = {
    # The cluster.
    "nodes_unreachable": Threshold(0, 1, 300),
    "racks_down": Threshold(None, 1, 60),
    "node_answers": Threshold(None, 1, 120, below=True),
    "nodes_live_spread": Threshold(0, None, 600),
    "restarts": Threshold(0, 2, 0),
    "schema_versions": Threshold(1, None, 600),
    "node_moving": Threshold(0, None, 5 * HOUR_S),
    "node_out_of_service": Threshold(0, None, 900),
    "native_running": Threshold(1, None, 120, below=True),
    # What clients ask.
    "read_p99": Threshold(0.1, 1.0),
    "write_p99": Threshold(0.05, 0.5),
    # How many times faster than it would last the objective's budget is spent.
    "read_burn": Threshold(3, 14.4, 120),
    "write_burn": Threshold(3, 14.4, 120),
    "timeouts": Threshold(2, 5),
    "unavailables": Threshold(None, 0, 120),
    "failures": Threshold(0.05, 1),
    # Where work waits.
    "dropped": Threshold(0, 10, 60),
    "hints": Threshold(0, None, 300),
    "hints_growing": Threshold(0, 100, 1800),
    "hints_failed": Threshold(0, None, 300),
    "requests_pending": Threshold(500, 1000, 900),
    "reads_pending": Threshold(500, 1000, 900),
    "mutations_pending": Threshold(500, 1000, 900),
    "pools_blocked": Threshold(0, None, 300),
    "native_discarded": Threshold(0, 10, 120),
    "exceptions": Threshold(0.01, 1),
    # What becomes of the data.
    "flushes_blocked": Threshold(0, 5, 120),
    "compactions_pending": Threshold(30, 100, 900),
    "commitlog_pending": Threshold(15, 100, 120),
    "commitlog_wait_p99": Threshold(0.5, 2.0, 300),
    "segment_wait_p99": Threshold(0.1, 1.0, 300),
    "memtable_wait_p99": Threshold(0.1, 1.0, 300),
    # Tables.
    "tombstones_per_read_p99": Threshold(500, 1000, 3 * HOUR_S),
    "sstables_per_read_p99": Threshold(15, 50, 2 * HOUR_S),
    "max_partition": Threshold(100 * MB, 200 * MB, 6 * HOUR_S),
    "bloom_false_share": Threshold(0.03, 0.05, 3 * HOUR_S),
    # The JVM.
    "heap_share": Threshold(0.85, 0.95, 900),
    "gc_share": Threshold(0.1, 0.25),
    "gc_pause_share": Threshold(0.1, 0.25),
    "gc_pause_mean": Threshold(0.5, 1.0, 300),
    "gc_last": Threshold(0.5, 1.0, 300),
    "files_share": Threshold(0.8, 0.95),
    # The machine.
    "disk_free_share": Threshold(0.2, 0.1, 600, below=True),
    # In how long the free space will be gone.
    "disk_fills": Threshold(DAY_S, 4 * HOUR_S, HOUR_S, below=True),
    "disk_util": Threshold(0.9, None, 1800),
    "cpu_steal": Threshold(0.1, 0.3),
    "pressure_memory": Threshold(0.1, 0.5, 300),
    # A clock that is kept by polls half an hour apart is a second off at most: the kernel adds 0.5 ms each second.
    "clock_error": Threshold(2, 8),
    "clock_synchronised": Threshold(1, None, 1800, below=True),
    # casstat itself.
    "agent_up": Threshold(1, None, 300, below=True),
    "node_read": Threshold(1, None, 600, below=True),
    "source_up": Threshold(1, None, 600, below=True),
    "tick_late_p99": Threshold(0.2, 0.5),
    "ticks_missed_share": Threshold(0.05, 0.5),
    "sink_up": Threshold(1, None, 600, below=True),
    "sink_lag": Threshold(5 * MIN_S, HOUR_S, 300),
    "sink_lost": Threshold(None, 0, 0),
    "sink_refused": Threshold(0, None, 300),
    "journal_lost": Threshold(None, 0, 0),
    "series_refused": Threshold(0, None, 1800),
}
