"""Latency objectives, and the thresholds of signals, which alerts, panels and `casstat top` share."""

from dataclasses import dataclass
from enum import IntEnum

from exporters.results.saturation.saturation import BUSY, COMPACTIONS_PENDING, GC_SHARE

MB = 1e6
MIN_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0


class Severity(IntEnum):
    """How serious a signal's value is, in ascending order."""

    OK = 0
    WARNING = 1
    CRITICAL = 2


@dataclass(frozen=True)
class Threshold:
    """The values beyond which a signal is at warning or critical severity, in the signal's unit.

    None stands for a severity that the signal never has. Only alerts use `for_s`, `traffic` and `min_ratios`, which
    prevent alerts on single events; panels and `top` still colour the values.

    for_s       the time for which the condition must hold. A rate over five minutes stays above zero for five minutes
                after a single event, so alerts on rates use a longer time.
    below       whether low values are bad.
    traffic     the row of `dashboards.rules.alert` that an error rate is compared with; "" for none.
    min_ratios  the minimum ratios of errors to traffic that a warning and a critical alert also require.
    """

    warning: float | None
    critical: float | None = None
    for_s: float = 600.0
    below: bool = False
    traffic: str = ""
    min_ratios: tuple[float, float] = (0.0, 0.0)

    def severity(self, value: float) -> Severity:
        if self._is_beyond(value, self.critical):
            return Severity.CRITICAL
        return Severity.WARNING if self._is_beyond(value, self.warning) else Severity.OK

    def _is_beyond(self, value: float, bound: float | None) -> bool:
        return bound is not None and (value < bound if self.below else value > bound)


@dataclass(frozen=True)
class Objective:
    """A latency objective: at least the fraction `target` of an operation's requests must complete within `bound_s`.

    bound_s    an upper bound of the agent's histograms: one of `exporters.metrics_page.metric_family.DEFAULT_S`.
    min_per_s  the request rate of a data centre below which the ratio is ignored, because one slow read among five
               is already 20%.
    """

    operation: str
    bound_s: float
    target: float
    min_per_s: float = 1.0


OBJECTIVES = {"read_burn": Objective("Read", 0.1, 0.99), "write_burn": Objective("Write", 0.05, 0.99)}


def _latency(objective: Objective) -> Threshold:
    """Return the thresholds of an operation's p99: the objective's bound, and five times that bound.

    Five times the bound is 0.5 s for reads and 0.25 s for writes. Many clients time out after a second or two, and
    nodes by default after 5 s (reads) and 2 s (writes); critical severity must be reached well before requests fail.
    """
    return Threshold(objective.bound_s, 5 * objective.bound_s)


FEW_PER_S = 0.01
"""Three events in five minutes."""
ONE_IN_1000 = (0.001, 0.01)
"""The minimum ratios of errors to traffic for a warning and for a critical alert."""
MIN_EVENTS_PER_S = 0.1
"""Percentile alerts do not fire below this rate: 30 events in five minutes."""

# The keys are the names of signals in `dashboards.signals`, or of values that no panel shows.
THRESHOLDS = {
    # The cluster.
    "agents_absent": Threshold(None, 0, 300),
    "agents_missing": Threshold(0.34, 0.5, 120),
    "nodes_unreachable": Threshold(0, 1, 300),
    "racks_down": Threshold(None, 1, 60),
    "node_answers": Threshold(None, 1, 120, below=True),
    "nodes_live_spread": Threshold(0, None, 600),
    "restarts": Threshold(0, 2, 0),
    "schema_versions": Threshold(1, None, 600),
    "node_moving": Threshold(0, None, 5 * HOUR_S),
    "node_out_of_service": Threshold(0, None, 900),
    "native_running": Threshold(1, None, 120, below=True),
    "native_running_anywhere": Threshold(None, 1, 120, below=True),
    # Requests.
    "read_p99": _latency(OBJECTIVES["read_burn"]),
    "write_p99": _latency(OBJECTIVES["write_burn"]),
    # Burn rates of the error budget; their windows replace `for_s`.
    "read_burn": Threshold(3, 14.4, 0),
    "write_burn": Threshold(3, 14.4, 0),
    "timeouts": Threshold(FEW_PER_S, 1, traffic="requests", min_ratios=ONE_IN_1000),
    "unavailables": Threshold(FEW_PER_S, 0.1, traffic="requests", min_ratios=ONE_IN_1000),
    "failures": Threshold(FEW_PER_S, 1, traffic="requests", min_ratios=ONE_IN_1000),
    # Overload.
    "dropped": Threshold(FEW_PER_S, 10, traffic="tasks", min_ratios=ONE_IN_1000),
    "hints": Threshold(1, None, traffic="writes", min_ratios=(0.01, 0.01)),
    "hints_growing": Threshold(0, 100, 1800),
    "hints_failed": Threshold(FEW_PER_S, None),
    "requests_pending": Threshold(500, 1000, 900),
    "reads_pending": Threshold(500, 1000, 900),
    "mutations_pending": Threshold(500, 1000, 900),
    "pools_blocked": Threshold(0, None, 300),
    "connection_pauses": Threshold(0.1),
    "native_discarded": Threshold(FEW_PER_S, 10, traffic="requests", min_ratios=ONE_IN_1000),
    "exceptions": Threshold(FEW_PER_S, 1),
    # Storage.
    "flushes_pending": Threshold(5, 20, 300),
    "compactions_pending": Threshold(COMPACTIONS_PENDING, 100, 900),
    "commitlog_pending": Threshold(15, 100, 120),
    "commitlog_wait_p99": Threshold(0.5, 2.0),
    "segment_wait_p99": Threshold(0.1, 1.0),
    "memtable_wait_p99": Threshold(0.1, 1.0),
    # Tables.
    "tombstones_per_read_p99": Threshold(500, 1000, 3 * HOUR_S),
    "sstables_per_read_p99": Threshold(15, 50, 2 * HOUR_S),
    "max_partition": Threshold(100 * MB, 200 * MB, 6 * HOUR_S),
    "bloom_false_share": Threshold(0.03, 0.05, 3 * HOUR_S),
    # The JVM.
    "heap_share": Threshold(0.85, 0.95, 900),
    "gc_pause_share": Threshold(0.1, GC_SHARE),
    "gc_pause_mean": Threshold(0.5, 1.0),
    "gc_last": Threshold(0.5, 1.0, 300),
    "files_share": Threshold(0.8, 0.95),
    # The machine.
    "disk_free_share": Threshold(0.2, 0.1, 600, below=True),
    # The time until the free space is used up.
    "disk_fills": Threshold(DAY_S, 4 * HOUR_S, 75 * MIN_S, below=True),
    "disk_util": Threshold(BUSY, None, 1800),
    "cpu_iowait": Threshold(0.3, 0.6),
    "cpu_steal": Threshold(0.1, 0.3),
    "pressure_memory": Threshold(0.1, 0.5),
    # If a time service polls every half hour, the error bound stays below 1 s: the kernel adds 0.5 ms to it per second.
    "clock_error": Threshold(2, 8),
    "clock_synchronised": Threshold(1, None, 1800, below=True),
    # Self-metrics.
    "agent_up": Threshold(1, None, 300, below=True),
    "node_read": Threshold(1, None, 600, below=True),
    "source_up": Threshold(1, None, 600, below=True),
    "tick_late_p99": Threshold(0.2, 0.5),
    "ticks_missed_share": Threshold(0.05, 0.5),
    "sink_up": Threshold(1, None, 600, below=True),
    "sink_lag": Threshold(5 * MIN_S, HOUR_S, 300),
    # Lost data cannot be recovered, so these alerts do not page.
    "sink_lost": Threshold(0, None, 0),
    "sink_refused": Threshold(0, None),
    "journal_lost": Threshold(0, None, 0),
    "series_refused": Threshold(0, None, 1800),
}
