"""What a search states about its result follows from the verdict on the step that failed."""

import json
from collections.abc import Sequence

from exporters.results.capacity.capacity_output import conclusions, json_text, step_line
from exporters.results.capacity.search import RAMP, SearchResult, Step, StepResult
from exporters.results.capacity.step_verdict import Failure, Verdict
from exporters.results.summary.conditions import condition_of
from tests.every import every

MISSED = Verdict(False, reason="client_p99_ms is 106.234")
UNSURE = Verdict(False, False, "client_p99_ms is 50.4")
NOT_ACHIEVED = Verdict(False, reason="400 of 591 were achieved", failure=Failure.RATE)
NO_RESULT = Verdict(False, reason="the command failed with exit status 3", failure=Failure.NO_RESULT)


def found(*steps: tuple[float, Verdict], by_client: bool = False, problem: str = "") -> SearchResult:
    results = [
        StepResult(
            Step(rate, 30.0, RAMP),
            "",
            {"client_latency": "response"},
            verdict,
            by_client=by_client and not verdict.is_met,
        )
        for rate, verdict in steps
    ]
    objectives = (condition_of("client_p99_ms < 50"),)
    return SearchResult(objectives, results, problem, "casstat demo load")


def stated(*steps: tuple[float, Verdict], by_client: bool = False, problem: str = "") -> Sequence[str]:
    return list(conclusions(found(*steps, by_client=by_client, problem=problem)))


OK = (400.0, Verdict(True))


@every(
    ("verdict", "by_client", "capacity", "reason"),
    [
        (
            MISSED,
            False,
            "Capacity: 400 operations per second (95% interval: 400 to 591).",
            "At 591/s: client_p99_ms is 106.234.",
        ),
        (
            UNSURE,
            False,
            "Capacity: 400 operations per second (the verdicts are too uncertain for a 95% interval).",
            "At 591/s: client_p99_ms is 50.4 (uncertain).",
        ),
        (
            NOT_ACHIEVED,
            False,
            "Capacity: 400 operations per second (95% interval: 400 to 591).",
            "At 591/s: 400 of 591 were achieved.",
        ),
        (
            NOT_ACHIEVED,
            True,
            "Capacity: at least 400 operations per second.",
            "The load generator, casstat demo load, did not achieve 591/s: 400 of 591 were achieved.",
        ),
        (
            MISSED,
            True,
            "Capacity: at least 400 operations per second.",
            "At 591/s, the load generator, casstat demo load, was saturated first: client_p99_ms is 106.234.",
        ),
        (
            NO_RESULT,
            False,
            "Capacity: at least 400 operations per second.",
            "There is no verdict on 591/s: the command failed with exit status 3.",
        ),
    ],
)
def test_each_conclusion_follows_from_the_verdict(
    verdict: Verdict, by_client: bool, capacity: str, reason: str
) -> None:
    failing = (591.0, verdict)
    assert stated(OK, failing, by_client=by_client) == [capacity, reason]
    alone = stated(failing, by_client=by_client)
    if capacity.startswith("Capacity: at least"):
        unknown = "The capacity is unknown: nothing shows that the cluster limited the lowest rate."
        assert alone == [unknown, reason]
    else:
        hint = "(hint: begin at a lower rate, or after the nodes have warmed up)"
        reason = reason.replace("At 591/s:", "The lowest rate, 591/s, does not meet the objectives:")
        assert alone == [f"{reason.removesuffix('.')} {hint}."]


def test_without_a_failure_the_capacity_is_at_least_the_highest_rate() -> None:
    assert stated(OK) == ["Capacity: at least 400 operations per second, the highest rate tested."]
    assert stated() == []


def test_a_search_that_ended_early_states_the_range_that_it_reached() -> None:
    early, capacity, _ = stated(OK, (800.0, MISSED), problem="interrupted")
    assert early == "The search ended early: interrupted."
    assert capacity == "Capacity: between 400 and 800 operations per second (95% interval: 400 to 800)."
    assert stated(problem="interrupted") == ["The search ended early: interrupted."]


def test_the_line_of_a_step_has_its_verdict() -> None:
    result = StepResult(Step(591.0, 30.0, RAMP), "", {"client_p99_ms": 50.4}, UNSURE, note="not settled")
    assert step_line(1, result, "client_p99_ms").endswith("50.4  client_p99_ms is 50.4 (uncertain); not settled")


@every(
    ("verdict", "by_client", "high"),
    [
        (MISSED, False, 591.0),
        (UNSURE, False, None),
        (MISSED, True, None),
        (NOT_ACHIEVED, True, None),
        (NO_RESULT, False, None),
    ],
)
def test_only_a_limit_of_the_cluster_is_an_upper_end_of_the_capacity(
    verdict: Verdict, by_client: bool, high: float | None
) -> None:
    content = json.loads(json_text(found(OK, (591.0, verdict), by_client=by_client), ["load"]))
    assert (content["capacity"], content["capacity_low"]) == (400, 400)
    assert (content["capacity_high"], content["failing_rate"]) == (high, 591)


def test_a_limit_of_the_cluster_above_one_of_the_load_generator_is_an_upper_end() -> None:
    steps = found(OK, (591.0, NO_RESULT), (620.0, MISSED))
    assert (steps.bracket.failing, steps.bracket.high) == (591, 620)
