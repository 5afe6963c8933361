"""The search for the highest rate that meets all objectives."""

from collections.abc import Callable, Mapping
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.results.capacity.search import CONFIRMATION, Bracket, SearchPlan, Step, bracket, rounded_rate, search
from exporters.results.capacity.step_verdict import StepData, Verdict, step_verdict
from exporters.results.summary.conditions import Condition, condition_of
from tests.examples import examples
from tests.exporters.results.capacity.simulated_queue import (
    CLOSED_CAPACITY,
    LIMIT_MS,
    OPEN_CAPACITY,
    closed_loop,
    open_loop,
)

PLAN = SearchPlan(50.0, 5000.0)
Measure = Callable[[float, float, np.random.Generator], StepData]
Judge = Callable[[Step], Verdict]


def searched(plan: SearchPlan, judge: Judge) -> tuple[Mapping[float, Verdict], list[Step]]:
    """Return the last verdicts of a search, and its steps."""
    steps: list[Step] = []
    running = search(plan)
    try:
        step = next(running)
        while True:
            steps.append(step)
            step = running.send(judge(step))
    except StopIteration as stop:
        return stop.value, steps


def measured_by(measure: Measure, objective: Condition, seed: int) -> Judge:
    """Return a judge of steps that a simulated load generator measures."""
    generator = np.random.default_rng(seed)
    by_rate: dict[float, list[StepData]] = {}

    def judge(step: Step) -> Verdict:
        by_rate.setdefault(step.rate, []).append(measure(step.rate, step.length_s, generator))
        return step_verdict([objective], by_rate[step.rate], step.rate)

    return judge


@pytest.mark.parametrize("seed", range(examples(20)))
@pytest.mark.parametrize(
    ("measure", "objective", "capacity"),
    [
        (open_loop, f"client_p99_ms < {LIMIT_MS}", OPEN_CAPACITY),
        # Far above the latency of a full queue of the few workers, so that only the achieved rate shows the overload.
        (closed_loop, "client_p99_ms < 1000", CLOSED_CAPACITY),
    ],
)
def test_the_capacity_of_a_queue_is_found(measure: Measure, objective: str, capacity: float, seed: int) -> None:
    verdicts, _ = searched(PLAN, measured_by(measure, condition_of(objective), seed))
    result = bracket(verdicts)
    assert result.capacity is not None
    assert result.capacity == pytest.approx(capacity, rel=0.05)
    assert result.low is not None
    assert result.high is not None
    assert result.low <= capacity <= result.high
    assert (result.high - result.low) / 2 <= 0.1 * result.capacity


@given(
    capacity=st.floats(1.0, 1e6),
    low=st.floats(0.01, 1e5),
    ratio=st.floats(1.1, 1e4),
    noise=st.floats(0.0, 0.1),
)
def test_certain_verdicts_lead_to_the_capacity(capacity: float, low: float, ratio: float, noise: float) -> None:
    """Verdicts within `noise` of the capacity are uncertain."""
    plan = SearchPlan(rounded_rate(low), rounded_rate(low * ratio))

    def judge(step: Step) -> Verdict:
        is_certain = abs(step.rate / capacity - 1) > noise
        return Verdict(step.rate <= capacity, is_certain, "" if step.rate <= capacity else "slow")

    verdicts, steps = searched(plan, judge)
    result = bracket(verdicts)
    assert all(plan.low <= step.rate <= plan.high for step in steps)
    assert (result.capacity or 0.0) <= capacity < (inf if result.failing is None else result.failing)
    assert result.low is None or result.low <= capacity
    assert result.high is None or result.high > capacity
    if result.capacity is not None:
        assert (result.capacity, CONFIRMATION) in {(step.rate, step.purpose) for step in steps}
        if result.failing is None:
            assert result.capacity == plan.high
        else:
            # Rates have three significant digits, so neighbours may differ by 1%.
            assert result.failing <= result.capacity * (1 + plan.precision) * 1.01
            assert (result.failing, CONFIRMATION) in {(step.rate, step.purpose) for step in steps}


@given(st.lists(st.booleans(), max_size=60), st.lists(st.booleans(), max_size=60))
def test_a_search_ends_whatever_the_verdicts(met: list[bool], certain: list[bool]) -> None:
    answers = iter(zip(met, certain, strict=False))

    def judge(_: Step) -> Verdict:
        is_met, is_certain = next(answers, (True, True))
        return Verdict(is_met, is_certain, "" if is_met else "slow")

    _, steps = searched(PLAN, judge)
    assert len(steps) < 80


def test_a_success_above_a_failure_is_ignored() -> None:
    met, failed = Verdict(True), Verdict(False, reason="slow")
    assert bracket({100.0: met, 200.0: failed, 300.0: met, 400.0: failed}) == Bracket(100.0, 200.0, 100.0, 200.0)


def test_an_uncertain_verdict_does_not_limit_the_confidence_interval() -> None:
    met, failed = Verdict(True), Verdict(False, reason="slow")
    unsure, unsure_failed = Verdict(True, is_certain=False), Verdict(False, is_certain=False, reason="slow")
    verdicts = {100.0: met, 150.0: unsure, 160.0: unsure_failed, 200.0: failed}
    assert bracket(verdicts) == Bracket(150.0, 160.0, 100.0, 200.0)


def test_if_the_lowest_rate_fails_there_is_no_capacity() -> None:
    verdicts, steps = searched(PLAN, lambda _: Verdict(False, reason="slow"))
    assert bracket(verdicts) == Bracket(None, 50.0, None, 50.0)
    assert [step.rate for step in steps] == [50.0]


def test_if_the_highest_rate_is_met_it_is_confirmed() -> None:
    verdicts, steps = searched(PLAN, lambda _: Verdict(True))
    assert bracket(verdicts) == Bracket(5000.0, None, 5000.0, None)
    assert steps[-1] == Step(5000.0, PLAN.confirmation_s, CONFIRMATION)
