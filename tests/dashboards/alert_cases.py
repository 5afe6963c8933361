"""A test case for each alert: series that give the alert's expression a chosen value."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dashboards.rules.alert import nearest_le
from dashboards.thresholds import OBJECTIVES, Objective

NODE = {"job": "casstat", "dc": "dc1", "rack": "r1", "node": "n1"}


@dataclass(frozen=True)
class Line:
    """A series; `at` returns its value in a given minute (for a counter, its rate), or None if it is absent then."""

    metric: str
    labels: tuple[tuple[str, str], ...]
    at: Callable[[int], float | None]
    counter: bool = False


@dataclass(frozen=True)
class Special:
    """An additional cluster that tests only the alert with this severity."""

    name: str
    severity: str
    series: Callable[[int], Sequence[Line]]
    fires: bool


@dataclass(frozen=True)
class Case:
    """The test data for an alert.

    series    returns the series for a given value; its second argument is the minute by which the alert must fire.
    bad       returns a value just beyond a given threshold.
    good      returns a value just within a given threshold.
    settle    the number of minutes within which the alert must resolve after its cause has ended.
    lead      the number of minutes until the alert's condition is met and its `for` duration begins.
    harmless  returns similar series that must not trigger the alert.
    calm      returns the series after the cause has ended; by default, those for a good value.
    traffic   returns the traffic series for a rate in events per second, if the alert compares errors with traffic.
    event     returns series with a single event; by default, the value is far beyond the threshold in one minute.
    lasts     whether the alert keeps firing after all of the cluster's series have ended.
    special   additional clusters; each tests only the alert with one severity.
    """

    series: Callable[[float, int], Sequence[Line]]
    bad: Callable[[float], float] = lambda bound: bound * 1.1 or 0.1
    good: Callable[[float], float] = lambda bound: bound * 0.9
    settle: int = 8
    lead: int = 7
    harmless: Callable[[int], Sequence[Line]] | None = None
    calm: Callable[[float, int], Sequence[Line]] | None = None
    traffic: Callable[[float], Line] | None = None
    event: Callable[[int], Sequence[Line]] | None = None
    lasts: bool = False
    special: Sequence[Special] = ()


def gauge(metric: str, value: float, /, **labels: str) -> Line:
    return Line(metric, tuple({**NODE, **labels}.items()), lambda _: value)


def moving(metric: str, at: Callable[[int], float | None], /, **labels: str) -> Line:
    return Line(metric, tuple({**NODE, **labels}.items()), at)


def counter(metric: str, per_s: float, /, **labels: str) -> Line:
    return Line(metric, tuple({**NODE, **labels}.items()), lambda _: per_s, counter=True)


def only_in(minute: int, line: Line) -> Line:
    """Return a counter that grows only in the given minute."""
    return replace(line, at=lambda at: line.at(at) if at == minute else 0.0)


def level(metric: str, /, **labels: str) -> Case:
    return Case(lambda value, _: [gauge(metric, value, **labels)])


def rate(metric: str, /, **labels: str) -> Case:
    return Case(lambda value, _: [counter(metric, value, **labels)])


def errors(metric: str, traffic: Callable[[float], Line], /, **labels: str) -> Case:
    """Return the case for an error rate that is compared with the traffic."""
    return Case(lambda value, _: [counter(metric, value, **labels)], traffic=traffic)


def requests(per_s: float) -> Line:
    return counter("cassandra_client_requests_total", per_s, operation="Read")


def writes(per_s: float) -> Line:
    return counter("cassandra_client_requests_total", per_s, operation="Write")


def tasks(per_s: float) -> Line:
    return counter("cassandra_pool_completed_total", per_s, path="request", pool="MutationStage")


def whole_number(metric: str, /, **labels: str) -> Case:
    """Return the case for a gauge whose values are whole numbers."""
    return Case(lambda value, _: [gauge(metric, value, **labels)], _more, _same)


def switch(metric: str, /, **labels: str) -> Case:
    """Return the case for a gauge that is 1 in the good state and 0 otherwise."""
    return Case(lambda value, _: [gauge(metric, value, **labels)], lambda _: 0, lambda _: 1)


def quantile(metric: str, /, **labels: str) -> Case:
    """Return the case for a histogram in which all events are just below the tested value."""

    def series(value: float, _: int) -> list[Line]:
        cumulative_per_s = {f"{value * 0.98:.6g}": 0.0, f"{value:.6g}": 10.0, "+Inf": 10.0}
        return [counter(f"{metric}_bucket", per_s, le=le, **labels) for le, per_s in cumulative_per_s.items()]

    return Case(series)


def ratio(numerator: str, denominator: str, /, **labels: str) -> Case:
    return Case(lambda value, _: [gauge(numerator, 1000 * value, **labels), gauge(denominator, 1000, **labels)])


def _more(bound: float) -> float:
    return bound + 1


def _same(bound: float) -> float:
    return bound


def _burn(objective: Objective) -> Case:
    operation, le = objective.operation, nearest_le(objective.bound_s)

    def series(factor: float, _: int) -> list[Line]:
        slow = min(factor * 0.01, 1)
        metric = "cassandra_client_request_duration_seconds_bucket"
        fast = counter(metric, 100 * (1 - slow), operation=operation, le=le)
        return [fast, counter(metric, 100, operation=operation, le="+Inf")]

    def one_of_five(minute: int) -> list[Line]:
        """Return the series for five requests in one minute; one of them is slow."""
        metric = "cassandra_client_request_duration_seconds_bucket"
        counts = {le: 4, "+Inf": 5}
        return [
            only_in(minute, counter(metric, count / 60, le=bound, operation=operation))
            for bound, count in counts.items()
        ]

    # The long window's ratio falls slowly, so it is the short window's ratio that ends the alert.
    return Case(series, settle=150, calm=lambda _, t1: series(0, t1), event=one_of_five)


def _agents(missing: int, total: int, unreachable: float | None = None) -> list[Line]:
    """Return the series of `total` agents; those of the first `missing` agents end after minute 3.

    If `unreachable` is not None, the last agent reports this number of unreachable nodes.
    """
    lines = [
        moving("casstat_build_info", _until(3) if number < missing else _always, node=f"n{number}", version="1.0")
        for number in range(total)
    ]
    metric = "cassandra_endpoints_unreachable"
    return [*lines, *([] if unreachable is None else [gauge(metric, unreachable, node=f"n{total - 1}")])]


def _always(_: int) -> float:
    return 1.0


def _until(last: int) -> Callable[[int], float | None]:
    return lambda minute: 1.0 if minute <= last else None


def _native_of_two(first: float, second: float) -> list[Line]:
    return [
        line
        for node, value in (("n1", first), ("n2", second))
        for line in (
            gauge("cassandra_native_transport_running", value, node=node),
            gauge("cassandra_operation_mode", 1, operation_mode="NORMAL", node=node),
        )
    ]


def _node_down(value: float, _: int) -> list[Line]:
    return [
        gauge("casstat_source_up", value, source="cassandra"),
        gauge("casstat_source_up", 1, source="cpu"),
        gauge("cassandra_endpoints_unreachable", 1, node="n2"),
    ]


def _only_unread(_: int) -> list[Line]:
    return [
        gauge("casstat_source_up", 0, source="cassandra"),
        gauge("cassandra_endpoints_unreachable", 0, node="n2"),
    ]


def _racks(value: float, _: int) -> list[Line]:
    up = [
        gauge("casstat_source_up", float(number > value), source="cassandra", rack=f"r{number}", node=f"n{number}")
        for number in (1, 2, 3)
    ]
    return [*up, gauge("cassandra_endpoints_unreachable", value, rack="r3", node="n3")]


def _one_rack(_: int) -> list[Line]:
    up = [gauge("casstat_source_up", 0, source="cassandra", node=node) for node in ("n1", "n2")]
    return [*up, gauge("cassandra_endpoints_unreachable", 2, rack="r2", node="n3")]


def _live(value: float, _: int) -> list[Line]:
    return [gauge("cassandra_endpoints_live", 5), gauge("cassandra_endpoints_live", 5 - value, node="n2")]


def _restarts(value: float, _: int) -> list[Line]:
    """Return the series for the start time of a node that restarts about `value` times per half hour."""
    every = {0: 10_000, 1: 20, 2: 16, 3: 8}[int(value)]
    return [moving("cassandra_jvm_start_time_seconds", lambda minute: 1.7e9 + minute // every)]


def _schemas(value: float, _: int) -> list[Line]:
    return [
        gauge("cassandra_schema_version", 1, node=f"n{number}", schema_version=f"v{min(number, int(value))}")
        for number in (1, 2, 3)
    ]


def _mode(mode: str) -> Case:
    def series(value: float, _: int) -> list[Line]:
        return [gauge("cassandra_operation_mode", 1, operation_mode=mode if value else "NORMAL")]

    return Case(series, lambda _: 1, lambda _: 0)


def _native(value: float, mode: str) -> list[Line]:
    running = gauge("cassandra_native_transport_running", value)
    return [running, gauge("cassandra_operation_mode", 1, operation_mode=mode)]


def _compactions(value: float, t1: int) -> list[Line]:
    return [moving("cassandra_compaction_pending", lambda minute: value - 0.01 * abs(t1 - minute))]


def _growing_compactions(value: float, t1: int) -> list[Line]:
    return [moving("cassandra_compaction_pending", lambda minute: value + 0.01 * (minute - t1))]


def _filling(value: float, t1: int) -> list[Line]:
    """Return the series of a disk that fills by one byte per second and is full `value` seconds after minute `t1`."""
    free = moving("node_filesystem_avail_bytes", lambda minute: value + 60 * (t1 - minute), mountpoint="/data")
    return [free, gauge("node_filesystem_size_bytes", 10 * value, mountpoint="/data")]


def _emptied(value: float, _: int) -> list[Line]:
    free = gauge("node_filesystem_avail_bytes", 9 * value, mountpoint="/data")
    return [free, gauge("node_filesystem_size_bytes", 10 * value, mountpoint="/data")]


def _half_empty(t1: int) -> list[Line]:
    free, size = _filling(7200, t1)
    return [free, Line(size.metric, size.labels, lambda _: 14_000)]


def _cpu(value: float, _: int) -> list[Line]:
    metric = "casstat_cpu_seconds_total"
    return [counter(metric, value * 4, mode="steal"), counter(metric, (1 - value) * 4, mode="idle")]


def _gc(value: float, _: int) -> list[Line]:
    young, beside = "G1 Young Generation", "ZGC Cycles"
    metric = "cassandra_jvm_gc_seconds_total"
    return [counter(metric, value, collector=young), counter(metric, 0.9, collector=beside)]


def _gc_mean(value: float, _: int) -> list[Line]:
    labels: Mapping[str, Any] = {"collector": "ZGC Pauses"}
    return [
        counter("cassandra_jvm_gc_seconds_total", value * 0.1, **labels),
        counter("cassandra_jvm_gc_total", 0.1, **labels),
    ]


def _delivered(_: int) -> list[Line]:
    return [counter("cassandra_hints_total", 500), counter("cassandra_hints_succeeded_total", 600)]


def _missed(value: float, _: int) -> list[Line]:
    return [counter("casstat_ticks_missed_total", value), counter("casstat_ticks_total", 1 - value)]


_TABLE = {"keyspace": "k", "table": "t"}
_SINK = {"sink": "influxdb+http://127.0.0.1:8086/db"}

CASES: Mapping[str, Case] = {
    "CasstatAgentsMissing": Case(
        lambda share, _: _agents(round(20 * share), 20, 5.0),
        lambda bound: bound + 0.05,
        lambda bound: bound - 0.02,
        calm=lambda _, __: _agents(0, 20),
        # One of three nodes has been removed from the cluster.
        harmless=lambda _: _agents(1, 3, 0.0),
        lasts=True,
        special=(
            Special("all-gone", "critical", lambda _: _agents(3, 3), fires=True),
            Special("two-of-three", "critical", lambda _: _agents(2, 3, 2.0), fires=True),
            Special("nodes-fine", "critical", lambda _: _agents(2, 3, 0.0), fires=False),
            Special("agents-missing", "warning", lambda _: _agents(2, 3, 0.0), fires=True),
        ),
    ),
    "CassandraNodesUnreachable": whole_number("cassandra_endpoints_unreachable"),
    "CassandraNodeDown": Case(_node_down, lambda _: 0, lambda _: 1, harmless=_only_unread),
    "CassandraRacksDown": Case(_racks, _more, _same, harmless=_one_rack),
    "CassandraNodesDisagree": Case(_live, _more, _same),
    "CassandraRestarted": Case(_restarts, _more, _same, settle=33, lead=35, calm=lambda _, t1: _restarts(0, t1)),
    "CassandraSchemaDisagreement": Case(_schemas, _more, _same),
    "CassandraNodeMovingForLong": _mode("JOINING"),
    "CassandraNodeOutOfService": _mode("DRAINED"),
    "CassandraNativeTransportOff": Case(
        lambda value, _: _native(value, "NORMAL"),
        lambda _: 0,
        lambda _: 1,
        harmless=lambda _: _native(0, "JOINING"),
    ),
    "CassandraDatacenterRefusesClients": Case(
        lambda value, _: _native_of_two(value, 0),
        lambda _: 0,
        lambda _: 1,
        harmless=lambda _: _native(0, "STARTING"),
    ),
    "CassandraReadsSlow": _burn(OBJECTIVES["read_burn"]),
    "CassandraWritesSlow": _burn(OBJECTIVES["write_burn"]),
    "CassandraTimeouts": errors("cassandra_client_request_timeouts_total", requests, operation="Read"),
    "CassandraUnavailables": errors("cassandra_client_request_unavailables_total", requests, operation="Write"),
    "CassandraFailures": errors("cassandra_client_request_failures_total", requests, operation="Read"),
    "CassandraRequestsDiscarded": errors("cassandra_native_discarded_total", requests),
    "CassandraMessagesDropped": errors("cassandra_messages_dropped_total", tasks, message="MUTATION_REQ"),
    "CassandraRequestsPending": level("cassandra_pool_pending", path="transport", pool="Native-Transport-Requests"),
    "CassandraReadsPending": level("cassandra_pool_pending", path="request", pool="ReadStage"),
    "CassandraMutationsPending": level("cassandra_pool_pending", path="request", pool="MutationStage"),
    "CassandraPoolBlocked": whole_number("cassandra_pool_blocked", path="internal", pool="CompactionExecutor"),
    "CassandraConnectionsPaused": rate("cassandra_native_pauses_total"),
    "CassandraHintsWritten": errors("cassandra_hints_total", writes),
    "CassandraHintsGrowing": Case(lambda value, _: [counter("cassandra_hints_total", value)], harmless=_delivered),
    "CassandraHintsNotDelivered": rate("cassandra_hints_failed_total"),
    "CassandraExceptions": rate("cassandra_exceptions_total"),
    "CassandraCompactionsGrowing": Case(
        _growing_compactions,
        harmless=lambda _: [gauge("cassandra_compaction_pending", 90)],
        calm=lambda value, _: [gauge("cassandra_compaction_pending", value / 3)],
    ),
    "CassandraCompactionsPending": level("cassandra_compaction_pending"),
    "CassandraFlushesPending": whole_number("cassandra_pool_pending", path="internal", pool="MemtableFlushWriter"),
    "CassandraCommitlogPending": level("cassandra_commitlog_pending"),
    "CassandraCommitlogWaits": quantile("cassandra_commitlog_commit_wait_seconds"),
    "CassandraCommitlogSegmentWaits": quantile("cassandra_commitlog_segment_wait_seconds"),
    "CassandraMemtableWaits": quantile("cassandra_memtable_wait_seconds"),
    "CassandraTombstones": quantile("cassandra_table_tombstones_per_read", **_TABLE),
    "CassandraSSTablesPerRead": quantile("cassandra_table_sstables_per_read", **_TABLE),
    "CassandraPartitionLarge": level("cassandra_table_max_partition_bytes", **_TABLE),
    "CassandraBloomFilterUseless": level("cassandra_table_bloom_filter_false_ratio", **_TABLE),
    "CassandraHeapFull": ratio("cassandra_jvm_heap_used_bytes", "cassandra_jvm_heap_max_bytes"),
    "CassandraGcShare": Case(_gc),
    "CassandraGcPauses": Case(_gc_mean),
    "CassandraFileDescriptors": ratio("cassandra_jvm_open_files", "cassandra_jvm_max_files"),
    "CassandraDiskNearlyFull": Case(
        ratio("node_filesystem_avail_bytes", "node_filesystem_size_bytes", mountpoint="/data").series,
        lambda bound: 0.9 * bound,
        lambda bound: 1.1 * bound,
    ),
    "CassandraDiskFilling": Case(
        _filling, lambda bound: 0.5 * bound, lambda bound: 1.3 * bound, calm=_emptied, harmless=_half_empty
    ),
    "CassandraDiskBusy": rate("node_disk_io_time_seconds_total", device="sda"),
    "CassandraCpuStolen": Case(_cpu),
    "CassandraMemoryPressure": rate("node_pressure_memory_waiting_seconds_total"),
    "CassandraClockError": level("casstat_clock_error_seconds"),
    "CassandraClockUnsynchronised": switch("casstat_clock_synchronised"),
    "CasstatAgentDown": switch("up", instance="127.0.0.1:17199"),
    "CasstatNodeUnread": switch("casstat_source_up", source="nodetool info"),
    "CasstatSourceFailing": switch("casstat_source_up", source="disk"),
    "CasstatTicksLate": quantile("casstat_tick_lateness_seconds"),
    "CasstatTicksMissed": Case(_missed),
    "CasstatSinkDown": switch("casstat_sink_up", **_SINK),
    "CasstatSinkLagging": level("casstat_sink_lag_seconds", **_SINK),
    "CasstatSinkLosing": rate("casstat_sink_lost_ticks_total", **_SINK),
    "CasstatSinkRefusing": rate("casstat_sink_refused_points_total", **_SINK),
    "CasstatJournalLosing": rate("casstat_journal_lost_ticks_total"),
    "CasstatSeriesRefused": whole_number("casstat_series_refused", metric="cassandra_table_operations_total"),
}
