"""Columns: what each figure means, as iostat, sar and the old script defined it."""

from dataclasses import replace

import pytest

from collector.catalogue import CATALOGUE
from collector.model.metric import Kind, Metric, Series
from collector.model.sample import Derived, Rate, Sample
from exporters.catalogue_page import page
from exporters.line.columns import Cell
from exporters.line.operation_columns import Operations
from exporters.line.view import View, interval_s
from tests.exporters.samples import busy, durations, plain, rate, unknown


def cells(sample: Sample, view: View | None = None) -> dict[str, Cell]:
    shown = view or plain(wide=True)
    return {column.name: column.of(sample) for column in shown.columns}


def of(values: dict[Series, Derived], view: View | None = None) -> dict[str, Cell]:
    return cells(replace(unknown(), values=values), view)


def test_cpu_shares_are_of_all_time_and_interrupts_are_the_systems() -> None:
    found = cells(busy())
    assert found["cpu_user_pct"] == pytest.approx(30.0)
    assert found["cpu_nice_pct"] == pytest.approx(2.5)
    assert found["cpu_system_pct"] == pytest.approx(10.0)
    assert found["cpu_idle_pct"] == pytest.approx(50.0)
    assert found["cpu_iowait_pct"] == pytest.approx(5.0)
    assert found["cpu_steal_pct"] == pytest.approx(2.5)


def test_cpu_shares_add_up_to_a_hundred() -> None:
    values = cells(busy())
    shares = [values[f"cpu_{mode}_pct"] for mode in ("user", "nice", "system", "idle", "iowait", "steal")]
    assert sum(share for share in shares if isinstance(share, float)) == pytest.approx(100.0)


def test_cpu_utilisation_is_all_time_but_idle_and_iowait() -> None:
    assert cells(busy())["cpu_busy_pct"] == pytest.approx(100.0 - 50.0 - 5.0)


def test_the_lines_user_column_includes_nice_unless_nice_has_a_column() -> None:
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


def test_json_and_csv_keep_nice_apart_from_user() -> None:
    values = cells(busy(), plain())
    assert values["cpu_user_pct"] == pytest.approx(30.0)
    assert values["cpu_nice_pct"] == pytest.approx(2.5)


def test_disk_figures_are_iostats() -> None:
    found = cells(busy())
    assert found["disk_reads_per_s"] == pytest.approx(120.5)
    assert found["disk_read_mb_per_s"] == pytest.approx(3.0)
    assert found["disk_write_mb_per_s"] == pytest.approx(12.5)
    assert found["disk_read_await_ms"] == pytest.approx(0.4)
    assert found["disk_write_await_ms"] == pytest.approx(5.0)
    assert found["disk_queue"] == pytest.approx(0.4482)
    assert found["disk_util_pct"] == pytest.approx(25.0)


def test_network_figures_are_sars() -> None:
    found = cells(busy())
    assert found["net_rx_kbit_per_s"] == pytest.approx(1000.0)
    assert found["net_tx_kbit_per_s"] == pytest.approx(2000.0)
    assert found["net_rx_packets_per_s"] == pytest.approx(900.0)


def test_all_collectors_of_garbage_count_together() -> None:
    assert cells(busy())["gc_pct"] == pytest.approx(1.5)


def test_a_hit_ratio_is_of_the_interval_and_absent_without_requests() -> None:
    found = cells(busy())
    assert found["key_cache_hit_pct"] == pytest.approx(75.0)
    assert found["row_cache_hit_pct"] is None
    assert found["chunk_cache_hit_pct"] is None


def test_an_idle_node_has_a_rate_but_no_latency() -> None:
    found = of(
        {
            ("cassandra_client_requests_total", "Read"): rate(0.0),
            ("cassandra_client_request_seconds_total", "Read"): rate(0.0),
            ("cassandra_client_request_duration_seconds", "Read"): durations({}),
        }
    )
    assert found["reads_per_s"] == 0.0
    for name in ("read_mean_ms", "read_p50_ms", "read_p95_ms", "read_p99_ms", "read_max_ms"):
        assert found[name] is None


def test_a_mean_is_the_intervals_time_over_its_requests() -> None:
    found = of(
        {
            ("cassandra_client_requests_total", "Write"): Rate(400.0, 2.0),
            ("cassandra_client_request_seconds_total", "Write"): Rate(0.5, 2.0),
        }
    )
    assert found["writes_per_s"] == pytest.approx(200.0)
    assert found["write_mean_ms"] == pytest.approx(1.25)


@pytest.mark.parametrize(
    ("operations", "labels"),
    [(Operations("ks"), ("ks",)), (Operations("ks", "t1"), ("ks", "t1"))],
)
def test_a_keyspace_or_table_has_its_own_operations(operations: Operations, labels: tuple[str, ...]) -> None:
    kind = "table" if len(labels) == 2 else "keyspace"
    values: dict[Series, Derived] = {
        (f"cassandra_{kind}_operations_total", *labels, "Read"): rate(10.0),
        (f"cassandra_{kind}_operation_seconds_total", *labels, "Read"): rate(0.02),
        (f"cassandra_{kind}_operation_duration_seconds", *labels, "Read"): durations({30: 20}),
        ("cassandra_client_requests_total", "Read"): rate(77.0),
    }
    found = of(values, View(operations))
    assert found["reads_per_s"] == pytest.approx(10.0)
    assert found["read_mean_ms"] == pytest.approx(2.0)
    assert found["read_p50_ms"] is not None


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("operations", [Operations(), Operations("ks"), Operations("ks", "t1")])
def test_a_view_names_all_metrics_that_its_columns_are_made_of(operations: Operations, wide: bool) -> None:
    view = View(operations, disk="vda", interface="eth0", wide=wide, compactions=True)
    needed = view.metrics(view.columns)
    assert needed <= set(CATALOGUE)
    assert {"cassandra_compaction_progress", "cassandra_compaction_size", *operations.metrics} <= needed


def test_a_column_is_made_of_the_metrics_it_needs_and_of_no_others() -> None:
    sample = busy()
    for column in plain(wide=True).columns:
        needed = {series: value for series, value in sample.values.items() if series[0] in column.needs}
        assert column.of(replace(sample, values=needed)) == column.of(sample)


def test_a_row_covers_what_cassandras_rates_cover_else_the_machines() -> None:
    assert interval_s(replace(unknown(), elapsed_s={"cassandra": 3.0, "cpu": 1.0})) == 3.0
    assert interval_s(replace(unknown(), elapsed_s={"cpu": 1.0, "disk": 0.5})) == 1.0
    assert interval_s(replace(unknown(), elapsed_s={"disk": 0.5, "memory": 0.75})) == 0.5
    assert interval_s(unknown()) is None


def test_the_page_has_a_row_for_every_metric_and_no_broken_one() -> None:
    text = page(CATALOGUE.values())
    rows = [row for row in text.splitlines() if row.startswith("| `")]
    assert len(rows) == len(CATALOGUE)
    head = next(row for row in text.splitlines() if row.startswith("| metric"))
    assert {row.count("|") for row in rows} == {head.count("|")}


def test_the_page_says_what_a_metric_is() -> None:
    metric = Metric("a_seconds_total", Kind.COUNTER, "seconds", "Time.", ("x", "y"))
    assert page([metric]).splitlines()[-1] == "| `a_seconds_total` | counter | seconds | x, y | tick | sum |  | Time. |"
