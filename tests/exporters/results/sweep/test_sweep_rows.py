"""The statistics of a sweep's rows: means, intervals, merged percentiles, convergence, and the best combination."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.load_results.client_result import Latency
from collector.model.histogram import Buckets
from exporters.results.sweep.sweep_output import plain_lines
from exporters.results.sweep.sweep_rows import (
    CLIENT,
    ERROR_TOLERANCE,
    NO_CLIENT_RESULT,
    NO_INTERVAL,
    SERVER,
    Outcome,
    RunValues,
    SweepRow,
    confidence_interval,
    sweep_table,
    with_best,
)
from tests.every import every
from tests.exporters.results.sweep.swept import client_run, hostile_table

LATENCIES_MS = st.lists(st.integers(1, 1000), min_size=1, max_size=50)


def row_of(*outcomes: Outcome, repeats: int = 3) -> SweepRow:
    (row,) = sweep_table("s", [{"c": "1"}], [outcomes], repeats).rows
    return row


def test_the_interval_is_that_of_student() -> None:
    # t(0.975, 2) = 4.30265, from tables; the standard deviation of 9, 10, 11 is 1.
    low, high = confidence_interval([9.0, 10.0, 11.0]) or (0.0, 0.0)
    assert low == pytest.approx(10 - 4.30265 / 3**0.5, rel=1e-5)
    assert high == pytest.approx(10 + 4.30265 / 3**0.5, rel=1e-5)
    assert confidence_interval([9.0]) is None
    assert confidence_interval([5.0, 5.0]) == (5.0, 5.0)
    assert (confidence_interval([1.0, 9.0]) or (1.0, 0.0))[0] == 0.0


def test_a_row_has_the_mean_throughput_of_its_runs() -> None:
    row = row_of(client_run(9), client_run(10), client_run(11))
    assert (row.runs, row.missing, row.failed, row.ops_per_s) == (3, 0, 0, 10)
    assert row.low is not None
    assert row.high is not None
    single = row_of(client_run(9))
    assert (single.runs, single.missing, single.low, single.high) == (1, 2, None, None)


@given(st.lists(LATENCIES_MS, min_size=1, max_size=4))
def test_percentiles_and_mean_are_those_of_all_operations(runs_ms: list[list[int]]) -> None:
    row = row_of(*(client_run(10, latencies_ms=latencies_ms) for latencies_ms in runs_ms))
    together = row_of(client_run(10, latencies_ms=[value for latencies_ms in runs_ms for value in latencies_ms]))
    assert (row.p50_ms, row.p95_ms, row.p99_ms) == (together.p50_ms, together.p95_ms, together.p99_ms)
    assert row.mean_ms == pytest.approx(together.mean_ms)


def test_percentiles_of_servers_come_from_summed_buckets() -> None:
    def run(*counts: float) -> RunValues:
        buckets = Buckets((0.001, 0.002, 0.004, inf), counts)
        return RunValues(SERVER, 10, operations=sum(counts), mean_ms=1.0, latency_kind=SERVER, buckets=buckets)

    row = row_of(run(100, 0, 0, 0), run(0, 0, 100, 0))
    assert row.p50_ms == pytest.approx(1.0)
    assert row.p95_ms == pytest.approx(2 + 2 * 0.9)
    assert row_of(run(100, 0, 0, 0), replace(run(1, 1, 1, 0), buckets=None)).p50_ms is None


def test_stated_percentiles_are_known_only_for_a_single_run() -> None:
    stated = replace(client_run(10), latency=Latency(stated_s={50.0: 0.001, 95.0: 0.002}), mean_ms=None)
    single = row_of(stated)
    assert (single.p50_ms, single.p95_ms, single.p99_ms, single.mean_ms) == (1.0, 2.0, None, None)
    assert not single.is_only_stated
    several = row_of(stated, stated)
    assert (several.p50_ms, several.p95_ms) == (None, None)
    assert several.is_only_stated


def test_latencies_of_different_kinds_are_not_merged() -> None:
    row = row_of(client_run(10), replace(client_run(10), latency_kind="response"))
    assert row.p99_ms is None


def test_errors_are_summed_and_an_unknown_number_makes_the_sum_unknown() -> None:
    row = row_of(client_run(10, errors=1), client_run(10, errors=2))
    assert row.errors == 3
    assert row.error_share == pytest.approx(3 / 5)
    assert row_of(client_run(10, errors=1), replace(client_run(10), errors=None)).errors is None


@every(("whole", "has_converged"), [(100.0, True), (102.9, True), (103.1, False), (96.0, False), (None, None)])
def test_a_row_has_converged_if_the_warm_up_makes_no_difference(
    whole: float | None, has_converged: bool | None
) -> None:
    assert row_of(client_run(100, whole)).has_converged is has_converged


def test_a_failed_run_has_a_reason_and_does_not_hide_the_others() -> None:
    row = row_of("first", client_run(10), "second")
    assert (row.runs, row.failed, row.problem, row.ops_per_s) == (1, 2, "first", 10)
    assert row_of(client_run(None)).problem == NO_INTERVAL


def test_values_of_clients_and_servers_are_not_mixed() -> None:
    server = RunValues(SERVER, 5.0, latency_kind=SERVER)
    table = sweep_table("s", [{"c": "1"}, {"c": "2"}], [[server], [client_run(10)]], 1)
    assert (table.source, table.latency_kind) == (CLIENT, "service")
    assert table.rows[0].problem == NO_CLIENT_RESULT
    assert table.rows[0].ops_per_s is None
    table = sweep_table("s", [{"c": "1"}], [[server]], 1)
    assert (table.source, table.latency_kind, table.rows[0].ops_per_s) == (SERVER, SERVER, 5.0)


def test_a_run_that_ended_within_its_warm_up_is_not_said_to_have_no_client_result() -> None:
    row = row_of(client_run(10), RunValues(SERVER, None))
    assert (row.runs, row.failed, row.problem) == (1, 1, NO_INTERVAL)


def test_the_best_row_has_the_highest_throughput_without_more_errors() -> None:
    def row(ops_per_s: float | None, share: float | None) -> SweepRow:
        return SweepRow({}, ops_per_s=ops_per_s, error_share=share)

    def best(*rows: SweepRow) -> list[int]:
        return [index for index, marked in enumerate(with_best(rows)) if marked.is_best]

    assert best(row(1, 0.0), row(3, 0.01), row(2, ERROR_TOLERANCE)) == [2]
    assert best(row(1, 0.5), row(3, 0.5), row(None, 0.0)) == [1]
    assert best(row(1, 0.0), row(3, None)) == [0]
    assert best(row(1, None), row(3, None)) == [1]
    assert best(row(3, 0.0), row(3, 0.0)) == [0]
    assert best(row(None, None)) == []
    assert best() == []


def test_the_hostile_table_has_a_best_row() -> None:
    table = hostile_table()
    assert table.best is table.rows[2]


def test_a_throughput_of_servers_with_missing_intervals_is_never_the_best() -> None:
    rows = [SweepRow({"c": str(number)}, 1, ops_per_s=rate) for number, rate in enumerate((2999.0, 3002.0))]
    rows[1] = replace(rows[1], intervals_missing=3)
    assert [row.is_best for row in with_best(rows, SERVER)] == [True, False]
    assert [row.is_best for row in with_best(rows, CLIENT)] == [False, True]
    table = replace(sweep_table("s", [{"c": "0"}], [[]], 1), source=SERVER, rows=with_best(rows, SERVER))
    assert [line for line in plain_lines(table) if "at least" in line] == [plain_lines(table)[2]]
    assert [line for line in plain_lines(table) if line.startswith("At least: where nodes lack intervals")]
