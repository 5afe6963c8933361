"""Sample data: a node under load, an interval without values, and views of the node."""

from collector.model.histogram import Buckets, upper_bounds_of
from collector.model.metric import Kind, Series
from collector.model.snapshot import Derived, Event, Rate, Sample, Tick
from collector.node.catalogue import CATALOGUE
from exporters.rows.view import View

TIME_S = 1_700_000_000.0
DISK, INTERFACE = "vda", "eth0"
ELAPSED_S = 2.0


def plain(**choices: object) -> View:
    """Return a view that shows `DISK` and `INTERFACE`."""
    return View(disk=DISK, interface=INTERFACE, **choices)  # type: ignore[arg-type]


def rate(per_s: float) -> Rate:
    return Rate(per_s * ELAPSED_S, ELAPSED_S)


def durations(filled: dict[int, int]) -> Buckets:
    return Buckets(upper_bounds_of("seconds", 128), tuple(filled.get(index, 0) for index in range(128)))


def requests() -> dict[Series, Derived]:
    """Return 4321.5 reads/s with a mean latency of 0.7 ms, and 1200 writes/s with a mean latency of 0.25 ms."""
    values: dict[Series, Derived] = {}
    for operation, per_s, mean_s, filled in (
        ("Read", 4321.5, 0.7e-3, {28: 4000, 32: 4200, 40: 400, 50: 43}),
        ("Write", 1200.0, 0.25e-3, {22: 1200, 27: 1100, 35: 100}),
    ):
        values["cassandra_client_requests_total", operation] = rate(per_s)
        values["cassandra_client_request_seconds_total", operation] = rate(per_s * mean_s)
        values["cassandra_client_request_duration_seconds", operation] = durations(filled)
    return values


def cpu() -> dict[Series, Derived]:
    seconds = {
        "user": 1.2,
        "nice": 0.1,
        "system": 0.3,
        "idle": 2.0,
        "iowait": 0.2,
        "irq": 0.02,
        "softirq": 0.08,
        "steal": 0.1,
    }
    return {("casstat_cpu_seconds_total", mode): Rate(increase, ELAPSED_S) for mode, increase in seconds.items()}


def disk() -> dict[Series, Derived]:
    per_s = {
        "reads_completed_total": 120.5,
        "writes_completed_total": 80.0,
        "read_bytes_total": 3 * 2**20,
        "written_bytes_total": 12.5 * 2**20,
        "read_time_seconds_total": 0.0482,
        "write_time_seconds_total": 0.4,
        "io_time_seconds_total": 0.25,
        "io_time_weighted_seconds_total": 0.4482,
    }
    return {(f"node_disk_{name}", DISK): rate(value) for name, value in per_s.items()}


def network() -> dict[Series, Derived]:
    per_s = {"receive_bytes": 125_000, "transmit_bytes": 250_000, "receive_packets": 900, "transmit_packets": 1100}
    return {(f"node_network_{name}_total", INTERFACE): rate(value) for name, value in per_s.items()}


def compactions() -> dict[Series, Derived]:
    values: dict[Series, Derived] = {("cassandra_compaction_pending",): 2.0}
    for labels, done, size in (
        (("1", "ks", "t1", "Validation"), 10.0, 100.0),
        (("2", "ks", "t2", "Compaction"), 58.4e6, 1e8),
        (("3", "", "", "Major compaction"), 0.0, 0.0),
    ):
        values |= {("cassandra_compaction_progress", *labels): done, ("cassandra_compaction_size", *labels): size}
    return values


def shown() -> dict[Series, Derived]:
    """Return a value for every column that the catalogue declares."""
    values: dict[Series, Derived] = {}
    for metric in CATALOGUE.values():
        for position, column in enumerate(metric.columns, 1):
            value = 12.0 * position / column.scale
            series = (metric.name, *column.labels)
            values[series] = rate(value) if metric.kind is Kind.COUNTER else value
    return values


def others() -> dict[Series, Derived]:
    return {
        ("cassandra_jvm_gc_seconds_total", "G1 Young Generation"): rate(0.015),
        ("cassandra_jvm_gc_seconds_total", "G1 Old Generation"): rate(0.0),
        ("cassandra_cache_hits_total", "KeyCache"): rate(90),
        ("cassandra_cache_requests_total", "KeyCache"): rate(120),
        ("cassandra_cache_hits_total", "RowCache"): rate(0),
        ("cassandra_cache_requests_total", "RowCache"): rate(0),
    }


def busy() -> Sample:
    """Return a sample with values in nearly all columns."""
    values = {**shown(), **requests(), **cpu(), **disk(), **network(), **compactions(), **others()}
    events = (Event("missed", "1 tick missed"), Event("disagreement", 'odd, "very" odd'))
    elapsed = {"cassandra": ELAPSED_S, "cpu": ELAPSED_S, "disk": ELAPSED_S}
    return Sample("10.0.0.1", Tick(TIME_S, late_s=0.0123), values, elapsed, events)


def unknown() -> Sample:
    """Return a sample without values."""
    return Sample("10.0.0.1", Tick(TIME_S + 1), {}, {})
