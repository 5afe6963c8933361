"""Verdicts on steps."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model.histogram import Buckets, upper_bounds_of
from collector.node.metrics.requests import COUNTED, Operation
from exporters.results.capacity.step_verdict import (
    Failure,
    StepData,
    Verdict,
    achieved_verdict,
    backlog_growth,
    combined,
    evidence_of,
    ratio_interval,
    refused_verdict,
    step_verdict,
    verdict_on,
)
from exporters.results.comparison.amounts import ALL, ClientBins, ServerInterval
from exporters.results.summary.conditions import condition_of
from exporters.rows.columns import Cell
from tests.every import every

SECONDS = 40


def bins(latencies_ms: list[int], failed: float = 0.0) -> ClientBins:
    """Return the bins of a client that completes operations with these latencies in every second."""
    per_second = len(latencies_ms)
    counts = np.stack(
        (
            np.repeat(np.arange(SECONDS), per_second),
            np.tile(np.array(latencies_ms, np.int64) * 1_000_000, SECONDS),
            np.ones(SECONDS * per_second, np.int64),
        )
    )
    seconds = np.ones(SECONDS)
    return ClientBins(seconds, np.full(SECONDS, float(per_second)), np.full(SECONDS, failed), counts)


def step(values: Mapping[str, Cell], client: Mapping[str, ClientBins] | None = None) -> StepData:
    return StepData(values, client or {})


def judged(text: str, data: StepData) -> Verdict:
    objective = condition_of(text)
    return verdict_on(objective, [evidence_of(objective, data)])


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=30),
    st.integers(1, 60),
    st.sampled_from([("p50", 50), ("p95", 95), ("p99", 99)]),
)
def test_a_percentile_meets_a_limit_if_few_operations_are_slower(
    latencies_ms: list[int], limit_ms: int, percentile: tuple[str, int]
) -> None:
    name, percentage = percentile
    whole = sorted(latencies_ms * SECONDS)
    value_ms = whole[max(-(-percentage * len(whole) // 100), 1) - 1]
    data = step({f"client_{name}_ms": float(value_ms)}, {ALL: bins(latencies_ms)})
    # Both mean that at most the percentile's share of operations took longer than the limit.
    assert judged(f"client_{name}_ms <= {limit_ms}", data).is_met == (value_ms <= limit_ms)


@every(
    ("text", "is_met", "is_certain"),
    [
        ("client_p99_ms < 10", True, True),
        ("client_p99_ms < 2", False, True),
        ("client_mean_ms < 3", True, True),
        ("client_mean_ms < 1", False, True),
        ("client_read_p99_ms < 10", True, True),
        ("client_ops_per_s > 30", True, True),
        ("client_ops_per_s > 50", False, True),
        ("client_errors_per_s < 0.5", False, True),
        ("client_error_share < 0.03", True, True),
        ("error_share < 0.01", False, True),
        ("cpu_busy_pct < 90", True, True),
        ("compactions_pending == 0", False, True),
    ],
)
def test_objectives(text: str, is_met: bool, is_certain: bool) -> None:
    values: dict[str, Cell] = {
        "client_p99_ms": 4.0,
        "client_mean_ms": 2.5,
        "client_read_p99_ms": 4.0,
        "client_ops_per_s": 40.0,
        "client_errors_per_s": 1.0,
        "client_error_share": 0.024,
        "error_share": 0.024,
        "cpu_busy_pct": 80.0,
        "compactions_pending": 3.0,
    }
    data = step(values, {ALL: bins([1, 2, 3, 4] * 10, failed=1.0), "client_read": bins([1, 2, 3, 4] * 10)})
    verdict = judged(text, data)
    assert (verdict.is_met, verdict.is_certain) == (is_met, is_certain)
    assert bool(verdict.reason) != is_met


def test_a_value_within_the_noise_of_the_limit_is_uncertain() -> None:
    random = np.random.default_rng(1)
    completed = random.poisson(100, SECONDS).astype(float)
    noisy = ClientBins(np.ones(SECONDS), completed, np.zeros(SECONDS), None)
    data = step({"client_ops_per_s": float(completed.mean())}, {ALL: noisy})
    assert not judged(f"client_ops_per_s > {completed.mean() - 0.5}", data).is_certain
    assert judged("client_ops_per_s > 80", data).is_certain


def test_an_absent_value_is_a_failure() -> None:
    verdict = judged("client_p99_ms < 10", step({"client_p99_ms": None}))
    assert verdict == Verdict(False, reason="no value for client_p99_ms", failure=Failure.NO_RESULT)


def test_the_server_s_percentiles_are_tested_by_its_buckets() -> None:
    bounds = upper_bounds_of("seconds", 165)
    index = next(number for number, bound in enumerate(bounds) if bound > 0.005)
    counts = [0] * len(bounds)
    counts[index] = 100
    interval = ServerInterval({"reads": 100.0}, {"Read": Buckets(bounds, tuple(counts))})
    data = StepData({"read_p99_ms": 1000 * bounds[index]}, {}, [interval] * SECONDS)
    assert judged("read_p99_ms < 10", data) == Verdict(True)
    assert judged("read_p99_ms < 1", data).is_met is False


def test_a_failure_is_certain_if_one_objective_certainly_fails() -> None:
    unsure = Verdict(False, is_certain=False, reason="a")
    assert combined([unsure, Verdict(False, reason="b"), Verdict(True)]) == Verdict(False, reason="a; b")
    assert combined([unsure, Verdict(True)]) == Verdict(False, is_certain=False, reason="a")
    assert combined([Verdict(True), Verdict(True, is_certain=False)]) == Verdict(True, is_certain=False)
    assert combined([]) == Verdict(True)
    rate = Verdict(False, reason="c", failure=Failure.RATE)
    assert combined([Verdict(False, reason="b"), rate]).failure is Failure.RATE
    # Only what is certain counts, if anything is.
    assert combined([Verdict(False, reason="b"), replace(rate, is_certain=False)]).failure is Failure.OBJECTIVE


def test_the_load_generator_must_achieve_the_rate() -> None:
    data = step({"client_latency": "service"}, {ALL: bins([1] * 97, failed=1.0)})
    assert achieved_verdict([data], 98.0).is_met
    assert achieved_verdict([data], 98.9).is_met
    verdict = achieved_verdict([data], 100.0)
    assert (verdict.is_met, verdict.reason) == (False, "98 of 100 operations per second were achieved")
    assert verdict.failure is Failure.RATE


def served(rate: float, per_second: Sequence[float], kind: str = "response") -> StepData:
    """Return a step in which `rate` operations per second are due and these numbers are completed, in this order."""
    seconds, due = len(per_second), np.arange(int(rate * len(per_second))) / rate
    cumulative = np.concatenate(([0.0], np.cumsum(per_second)))
    numbers = np.arange(1, int(min(cumulative[-1], len(due))) + 1)
    # Within a second, operations end at equal distances, but none before it is due.
    ends_s = np.maximum(np.interp(numbers, cumulative, np.arange(seconds + 1)), due[: len(numbers)])
    latencies_ns = ((ends_s - due[: len(numbers)]) * 1e9).astype(np.int64) + 1
    rows = np.minimum(ends_s.astype(np.int64), seconds - 1)
    completed = np.bincount(rows, minlength=seconds).astype(float)
    counts = np.stack((rows, latencies_ns, np.ones(len(rows), np.int64)))
    bins = ClientBins(np.ones(seconds), completed, np.zeros(seconds), counts)
    return step({"client_latency": kind}, {ALL: bins})


BURSTS = [8000, 8000, 8000, 3900, 8000, 8000, 4000, 8000, 8000, 3500, 8000, 8000, 4000, 8000, 8730]


def test_a_rate_is_not_met_while_the_backlog_grows_however_wide_the_interval_is() -> None:
    """Steps of 15 s with bursts: the upper end of the interval of what was achieved reaches the rate."""
    overloaded = served(8000.0, BURSTS)
    assert sum(BURSTS) / 15 == pytest.approx(6942)
    interval = ratio_interval([np.column_stack((BURSTS, np.ones(15)))], is_count=True, level=0.001)
    assert interval is not None
    assert interval.high > 8000
    growth = backlog_growth(overloaded)
    assert growth is not None
    assert growth > 0.1
    verdict = achieved_verdict([overloaded], 8000.0)
    assert (verdict.is_met, verdict.is_certain) == (False, True)
    assert verdict.reason == "6942 of 8000 operations per second were achieved, and the backlog grew until the end"


def test_with_service_times_bursts_are_uncertain() -> None:
    assert not achieved_verdict([served(8000.0, BURSTS, "service")], 8000.0).is_certain


@given(st.integers(9, 60), st.floats(0.02, 0.5))
def test_a_backlog_that_grows_steadily_is_refuted(seconds: int, missing: float) -> None:
    rate = 2000.0
    verdict = achieved_verdict([served(rate, [rate * (1 - missing)] * seconds)], rate)
    assert (verdict.is_met, verdict.is_certain) == (False, True)


def test_a_pause_whose_backlog_is_served_does_not_refute_a_rate() -> None:
    pause = [1000.0] * 6 + [0.0, 400.0] + [1400.0] * 8 + [1000.0] * 4
    assert achieved_verdict([served(1000.0, pause)], 1000.0) == Verdict(True)
    # The step ends within a pause: the missing operations are waiting.
    at_end = [1000.0] * 18 + [300.0, 400.0]
    assert achieved_verdict([served(1000.0, at_end)], 1000.0) == Verdict(True)


def test_operations_that_are_due_at_random_times_may_be_fewer_than_the_rate() -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        completed = random.poisson(10, 30)
        latencies_ms = random.integers(1, 4, int(completed.sum()))
        rows = np.repeat(np.arange(30), completed)
        counts = np.stack((rows, latencies_ms * 1_000_000, np.ones(len(rows), np.int64)))
        waiting = ClientBins(np.ones(30), completed.astype(float), np.zeros(30), counts)
        assert achieved_verdict([step({"client_latency": "response"}, {ALL: waiting})], 10.0) == Verdict(True)


@given(st.integers(10, 90), st.floats(0.991, 1.02), st.sampled_from(["response", "service"]))
def test_a_load_generator_that_misses_its_rate_slightly_by_design_achieves_it(
    seconds: int, share: float, kind: str
) -> None:
    constant = ClientBins(np.ones(seconds), np.full(seconds, 200.0 * share), np.zeros(seconds), None)
    assert achieved_verdict([step({"client_latency": kind}, {ALL: constant})], 200.0) == Verdict(True)


def test_what_is_neither_shown_nor_refuted_is_uncertain() -> None:
    noisy = np.random.default_rng(2).permutation([60.0, 140.0] * 20)
    for missing, is_met in ((0.0, True), (2.0, False)):
        bins = ClientBins(np.ones(40), noisy - missing, np.zeros(40), None)
        verdict = achieved_verdict([step({"client_latency": "service"}, {ALL: bins})], 100.0)
        assert (verdict.is_met, verdict.is_certain) == (is_met, False)


def test_high_rates_are_shown_without_exponents() -> None:
    data = step({"client_latency": "service"}, {ALL: bins([1], failed=33_607.7)})
    assert achieved_verdict([data], 1_234_567.0).reason == "33609 of 1234567 operations per second were achieved"


def test_without_client_results_no_rate_is_achieved() -> None:
    assert achieved_verdict([step({})], 1.0) == Verdict(False, reason="no client results", failure=Failure.NO_RESULT)


def test_with_service_times_no_request_may_be_refused() -> None:
    refused: dict[str, Cell] = {"read_timeouts": 2.0, "write_timeouts": 0.0, "requests_discarded": None}
    assert refused_verdict({**refused, "client_latency": "service"}) == Verdict(False, reason="read_timeouts is 2")
    assert refused_verdict({**refused, "client_latency": "response"}).is_met


@every("operation", COUNTED)
def test_an_operation_of_any_kind_may_be_refused(operation: Operation) -> None:
    column = f"{operation.word}_timeouts"
    verdict = refused_verdict({column: 300, "client_latency": "service"})
    assert verdict == Verdict(False, reason=f"{column} is 300")


def test_a_serial_read_that_times_out_is_stated_once() -> None:
    values: dict[str, Cell] = {"read_timeouts": 3, "cas_read_timeouts": 3, "client_latency": "service"}
    assert refused_verdict(values).reason == "read_timeouts is 3"


def test_steps_at_a_rate_are_judged_together() -> None:
    slow, fast = ({ALL: bins(latencies)} for latencies in ([20, 20], [1, 1]))
    values: dict[str, Cell] = {"client_p50_ms": 1.0, "client_latency": "response"}
    objectives = [condition_of("client_p50_ms < 10")]
    assert step_verdict(objectives, [step(values, fast)], 2.0) == Verdict(True)
    together = step_verdict(objectives, [step(values, slow), step(values, slow), step(values, fast)], 2.0)
    assert not together.is_met
