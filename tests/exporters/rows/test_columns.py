"""Column values follow the definitions of iostat, sar and the original casstat script."""

from dataclasses import replace

import pytest

from collector.model.metric import Kind, Metric, Series
from collector.model.rates import Readings, rates, update_readings
from collector.model.snapshot import Derived, Rate, Sample, Scrape, Snapshot, Tick
from collector.node.catalogue import CATALOGUE
from collector.node.host import cpu
from collector.node.metrics.separate_writes import with_separate_writes
from exporters.catalogue_page import page
from exporters.rows.columns import Cell
from exporters.rows.operation_columns import Operations
from exporters.rows.view import View, interval_s
from tests.every import every
from tests.exporters.samples import busy, durations, plain, rate, unknown


def cells(sample: Sample, view: View | None = None) -> dict[str, Cell]:
    return {column.name: column.of(sample) for column in (view or plain(wide=True)).columns}


def cells_of(values: dict[Series, Derived], view: View | None = None) -> dict[str, Cell]:
    return cells(replace(unknown(), values=values), view)


def test_interrupts_belong_to_the_system_share_of_cpu_time() -> None:
    columns = cells(busy())
    assert columns["cpu_user_pct"] == pytest.approx(30.0)
    assert columns["cpu_nice_pct"] == pytest.approx(2.5)
    assert columns["cpu_system_pct"] == pytest.approx(10.0)
    assert columns["cpu_idle_pct"] == pytest.approx(50.0)
    assert columns["cpu_iowait_pct"] == pytest.approx(5.0)
    assert columns["cpu_steal_pct"] == pytest.approx(2.5)


def test_cpu_shares_add_up_to_100() -> None:
    values = cells(busy())
    shares = [values[f"cpu_{mode}_pct"] for mode in ("user", "nice", "system", "idle", "iowait", "steal")]
    assert sum(share for share in shares if isinstance(share, float)) == pytest.approx(100.0)


def test_cpu_utilisation_excludes_idle_and_iowait() -> None:
    assert cells(busy())["cpu_busy_pct"] == pytest.approx(100.0 - 50.0 - 5.0)


CPU_BEFORE = {
    "user": 1000,
    "nice": 50,
    "system": 500,
    "idle": 8000,
    "iowait": 300,
    "irq": 9,
    "softirq": 10,
    "steal": 70,
}
CPU_GROWTH = {"user": 60, "nice": 0, "system": 20, "idle": 110, "iowait": 8, "irq": 0, "softirq": 2, "steal": 0}


@every(("decreasing", "by"), [("iowait", 2), ("iowait", 299), ("idle", 1), ("steal", 70), ("nice", 3)])
def test_a_mode_that_decreases_has_no_share_and_the_others_keep_theirs(decreasing: str, by: int) -> None:
    growth = {**CPU_GROWTH, decreasing: -by}
    readings: Readings = {}
    snapshots = []
    for at_s, ticks in ((1.0, CPU_BEFORE), (2.0, {mode: CPU_BEFORE[mode] + growth[mode] for mode in cpu.MODES})):
        stat = f"cpu  {' '.join(str(ticks[mode]) for mode in cpu.MODES)} 0 0\n"
        snapshots.append(Snapshot("n", Tick(at_s), (Scrape("cpu", at_s, cpu.parse(stat), "boot"),)))
    update_readings(readings, snapshots[0])
    sample = rates(CATALOGUE, readings, snapshots[1])
    # As sysstat computes them: the decrease counts as 0.
    total = sum(max(increase, 0) for increase in growth.values())
    shares = {mode: 100 * max(growth[mode], 0) / total for mode in ("user", "nice", "idle", "iowait", "steal")}
    result = {mode: cells(sample)[f"cpu_{mode}_pct"] for mode in shares}
    assert result == pytest.approx(shares)
    assert cells(sample)["cpu_system_pct"] == pytest.approx(100 - sum(shares.values()))


def test_the_user_column_of_the_text_output_includes_nice_unless_nice_has_a_column() -> None:
    def user_and_headers(view: View) -> tuple[Cell, list[str]]:
        columns = view.text_columns
        (user,) = [column for column in columns if column.header == "%user"]
        return user.of(busy()), [column.header for column in columns]

    user_pct, headers = user_and_headers(plain())
    assert user_pct == pytest.approx(32.5)
    assert "%nice" not in headers
    user_pct, headers = user_and_headers(plain(wide=True))
    assert user_pct == pytest.approx(30.0)
    assert "%nice" in headers


def test_json_and_csv_separate_nice_from_user() -> None:
    values = cells(busy(), plain())
    assert values["cpu_user_pct"] == pytest.approx(30.0)
    assert values["cpu_nice_pct"] == pytest.approx(2.5)


def test_disk_values_match_iostat() -> None:
    columns = cells(busy())
    assert columns["disk_reads_per_s"] == pytest.approx(120.5)
    assert columns["disk_read_mb_per_s"] == pytest.approx(3.0)
    assert columns["disk_write_mb_per_s"] == pytest.approx(12.5)
    assert columns["disk_read_await_ms"] == pytest.approx(0.4)
    assert columns["disk_write_await_ms"] == pytest.approx(5.0)
    assert columns["disk_queue"] == pytest.approx(0.4482)
    assert columns["disk_util_pct"] == pytest.approx(25.0)


def test_network_values_match_sar() -> None:
    columns = cells(busy())
    assert columns["net_rx_kbit_per_s"] == pytest.approx(1000.0)
    assert columns["net_tx_kbit_per_s"] == pytest.approx(2000.0)
    assert columns["net_rx_packets_per_s"] == pytest.approx(900.0)


def test_all_garbage_collectors_are_added_up() -> None:
    assert cells(busy())["gc_pct"] == pytest.approx(1.5)


# The beans of Temurin 25 and OpenJDK 17, and CMS and ZGC of earlier versions; True for those that measure pauses.
COLLECTORS = {
    **dict.fromkeys(("Copy", "MarkSweepCompact", "PS Scavenge", "PS MarkSweep", "ParNew", "ConcurrentMarkSweep"), True),
    **dict.fromkeys(("G1 Young Generation", "G1 Old Generation", "G1 Concurrent GC"), True),
    **dict.fromkeys(("ZGC Pauses", "ZGC Minor Pauses", "ZGC Major Pauses", "Shenandoah Pauses"), True),
    **dict.fromkeys(("ZGC Cycles", "ZGC Minor Cycles", "ZGC Major Cycles", "Shenandoah Cycles", "ZGC"), False),
}


@every(("collector", "pauses"), COLLECTORS.items())
def test_only_pauses_count_as_time_in_garbage_collection(collector: str, pauses: bool) -> None:
    gc_pct = cells_of({("cassandra_jvm_gc_seconds_total", collector): rate(0.45)})["gc_pct"]
    assert gc_pct == (pytest.approx(45.0) if pauses else None)


def test_concurrent_cycles_are_left_out_of_the_time_of_pauses() -> None:
    counter = "cassandra_jvm_gc_seconds_total"
    values: dict[Series, Derived] = {(counter, "ZGC Cycles"): rate(0.45), (counter, "ZGC Pauses"): rate(0.0004)}
    assert cells_of(values)["gc_pct"] == pytest.approx(0.04)


def test_a_hit_ratio_covers_the_interval_and_is_absent_without_requests() -> None:
    columns = cells(busy())
    assert columns["key_cache_hit_pct"] == pytest.approx(75.0)
    assert columns["row_cache_hit_pct"] is None
    assert columns["chunk_cache_hit_pct"] is None


COUNTED = {"Read": 187.0, "Write": 166.0, "RangeSlice": 53.0, "CASRead": 19.0, "CASWrite": 83.0, "ViewWrite": 15.0}


@pytest.mark.parametrize(("variant", "total"), [(None, 406.0), (0.0, 406.0), (1.0, 489.0)])
def test_the_total_counts_no_operation_twice(variant: float | None, total: float) -> None:
    # Serial reads are reads, and so are the reads of conditional writes, except with Paxos v2. View writes are writes.
    values: dict[Series, Derived] = {
        ("cassandra_client_requests_total", scope): rate(per_s) for scope, per_s in COUNTED.items()
    }
    values |= {} if variant is None else {("cassandra_paxos_v2",): variant}
    columns = cells(with_separate_writes(replace(unknown(), values=values)))
    assert columns["operations_per_s"] == pytest.approx(total)
    assert [columns[f"{word}s_per_s"] for word in ("read", "range_read", "cas_write")] == [187.0, 53.0, 83.0]
    assert columns["accord_reads_per_s"] is None


def test_each_operation_has_its_latencies_and_errors() -> None:
    scope = "RangeSlice"
    columns = cells_of(
        {
            ("cassandra_client_requests_total", scope): Rate(100.0, 2.0),
            ("cassandra_client_request_seconds_total", scope): Rate(1.0, 2.0),
            ("cassandra_client_request_duration_seconds", scope): durations({28: 100}),
            ("cassandra_client_request_timeouts_total", scope): rate(2),
            ("cassandra_client_request_failures_total", scope): rate(1),
        }
    )
    assert columns["range_read_mean_ms"] == pytest.approx(10.0)
    latencies = [columns[f"range_read_{name}_ms"] for name in ("p50", "p95", "p99", "max")]
    assert latencies == pytest.approx([0.341, 0.37, 0.372, 0.372], rel=0.01)
    assert columns["range_read_errors_per_s"] == 3
    assert columns["read_errors_per_s"] is None


def test_range_reads_of_a_keyspace_are_local_and_count_in_its_total() -> None:
    view = View(Operations("ks"), wide=True)
    names = (("Read", 5), ("Write", 3), ("Range", 2))
    columns = cells_of(
        {("cassandra_keyspace_operations_total", "ks", name): rate(per_s) for name, per_s in names}, view
    )
    assert columns["range_reads_per_s"] == 2
    assert columns["operations_per_s"] == 10
    assert columns["cas_writes_per_s"] is None


def test_an_idle_node_has_a_rate_but_no_latency() -> None:
    columns = cells_of(
        {
            ("cassandra_client_requests_total", "Read"): rate(0.0),
            ("cassandra_client_request_seconds_total", "Read"): rate(0.0),
            ("cassandra_client_request_duration_seconds", "Read"): durations({}),
        }
    )
    assert columns["reads_per_s"] == 0.0
    for name in ("read_mean_ms", "read_p50_ms", "read_p95_ms", "read_p99_ms", "read_max_ms"):
        assert columns[name] is None


def test_a_mean_latency_divides_the_time_by_the_requests_of_the_interval() -> None:
    columns = cells_of(
        {
            ("cassandra_client_requests_total", "Write"): Rate(400.0, 2.0),
            ("cassandra_client_request_seconds_total", "Write"): Rate(0.5, 2.0),
        }
    )
    assert columns["writes_per_s"] == pytest.approx(200.0)
    assert columns["write_mean_ms"] == pytest.approx(1.25)


@pytest.mark.parametrize(
    ("operations", "labels"),
    [(Operations("ks"), ("ks",)), (Operations("ks", "t1"), ("ks", "t1"))],
)
def test_a_selected_keyspace_or_table_shows_its_own_operations(operations: Operations, labels: tuple[str, ...]) -> None:
    kind = "table" if len(labels) == 2 else "keyspace"
    values: dict[Series, Derived] = {
        (f"cassandra_{kind}_operations_total", *labels, "Read"): rate(10.0),
        (f"cassandra_{kind}_operation_seconds_total", *labels, "Read"): rate(0.02),
        (f"cassandra_{kind}_operation_duration_seconds", *labels, "Read"): durations({30: 20}),
        ("cassandra_client_requests_total", "Read"): rate(77.0),
    }
    columns = cells_of(values, View(operations))
    assert columns["reads_per_s"] == pytest.approx(10.0)
    assert columns["read_mean_ms"] == pytest.approx(2.0)
    assert columns["read_p50_ms"] is not None


@every("wide", [False, True])
@every("operations", [Operations(), Operations("ks"), Operations("ks", "t1")])
def test_a_view_lists_all_metrics_of_its_columns(operations: Operations, wide: bool) -> None:
    view = View(operations, disk="vda", interface="eth0", wide=wide, compactions=True)
    needed = view.metrics(view.columns)
    assert needed <= set(CATALOGUE)
    assert {"cassandra_compaction_progress", "cassandra_compaction_size", *operations.metrics} <= needed


def test_a_column_uses_only_the_metrics_that_it_declares() -> None:
    sample = busy()
    for column in plain(wide=True).columns:
        needed = {series: value for series, value in sample.values.items() if series[0] in column.needs}
        assert column.of(replace(sample, values=needed)) == column.of(sample)


def test_the_interval_is_taken_from_cassandra_or_else_from_the_machine() -> None:
    assert interval_s(replace(unknown(), elapsed_s={"cassandra": 3.0, "cpu": 1.0})) == 3.0
    assert interval_s(replace(unknown(), elapsed_s={"cpu": 1.0, "disk": 0.5})) == 1.0
    assert interval_s(replace(unknown(), elapsed_s={"disk": 0.5, "memory": 0.75})) == 0.5
    assert interval_s(unknown()) is None


def test_the_metrics_page_has_a_well_formed_row_per_metric() -> None:
    text = page(CATALOGUE.values()).partition("## Names in OpenTelemetry")[0]
    rows = [row for row in text.splitlines() if row.startswith("| `")]
    assert len(rows) == len(CATALOGUE)
    head = next(row for row in text.splitlines() if row.startswith("| metric"))
    assert {row.count("|") for row in rows} == {head.count("|")}


def test_a_row_of_the_metrics_page_describes_its_metric() -> None:
    metric = Metric("a_seconds_total", Kind.COUNTER, "seconds", "Time.", ("x", "y"))
    assert (
        page([metric]).partition("## Names in OpenTelemetry")[0].splitlines()[-1]
        == "| `a_seconds_total` | counter | seconds | x, y | tick | sum |  | Time. |"
    )
