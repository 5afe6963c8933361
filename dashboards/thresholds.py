"""From when on a signal is worth a warning, and from when on somebody must get up: for panels and alerts alike."""

from dataclasses import dataclass

MB = 1e6


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


# By the names of `dashboards.signals`.
THRESHOLDS = {
    "nodes_down": Threshold(0, 1, 300),
    "read_p99": Threshold(0.1, 1.0),
    "write_p99": Threshold(0.05, 0.5),
    "timeouts": Threshold(2, 5),
    "unavailables": Threshold(None, 0, 120),
    "failures": Threshold(0.05, 1),
    "dropped": Threshold(0, 10, 60),
    "hints": Threshold(0, None, 300),
    "requests_pending": Threshold(500, 1000, 900),
    "reads_pending": Threshold(500, 1000, 900),
    "mutations_pending": Threshold(500, 1000, 900),
    "flushes_blocked": Threshold(0, 5, 120),
    "compactions_pending": Threshold(30, 100, 900),
    "commitlog_pending": Threshold(15, 100, 120),
    "tombstones_per_read_p99": Threshold(500, 1000, 10800),
    "sstables_per_read_p99": Threshold(15, 50, 7200),
    "max_partition": Threshold(100 * MB, 200 * MB, 21600),
    "bloom_false_share": Threshold(0.03, 0.05, 10800),
    "heap_share": Threshold(0.85, 0.95, 900),
    "gc_share": Threshold(0.1, 0.25),
    "gc_last": Threshold(0.5, 1.0, 0),
    "disk_free_share": Threshold(0.4, 0.15, 600, below=True),
    "disk_util": Threshold(0.9, None, 1800),
    "cpu_steal": Threshold(0.1, 0.3),
    "exceptions": Threshold(0.01, 1),
}
