"""The result of a search for the capacity as text: a line per step, and the conclusions."""

from collections.abc import Iterator

from exporters.results.capacity.number_text import measured_text, rate_text
from exporters.results.capacity.objective_verdict import Failure
from exporters.results.capacity.search import Step
from exporters.results.capacity.step_result import SearchResult, StepResult

HEADER = f"{'step':>4}  {'purpose':12}  {'rate/s':>9}  {'achieved/s':>10}  {'length':>7}  {'latency ms':>10}  verdict"
NOT_INCLUDED = "the load generator states only service times: queueing is not included (coordinated omission possible)"


def step_text(number: int, step: Step, warm_up_s: float) -> str:
    """Return what is about to run."""
    after = f" after {warm_up_s:g} s of warm-up" if warm_up_s else ""
    return f"step {number}: {rate_text(step.rate)}/s for {step.length_s:g} s{after} ({step.purpose})"


def step_line(number: int, result: StepResult, latency_column: str) -> str:
    """Return the line of a step."""
    achieved, latency = result.values.get("client_ops_per_s"), result.values.get(latency_column)
    note = f"; {result.note}" if result.note else ""
    return (
        f"{number:4}  {result.step.purpose:12}  {rate_text(result.step.rate):>9}  {_number(achieved):>10}"
        f"  {f'{result.step.length_s:g} s':>7}  {_number(latency):>10}  {result.verdict.text}{note}"
    )


def _number(cell: object) -> str:
    return measured_text(cell) if isinstance(cell, int | float) else "-"


def conclusions(result: SearchResult) -> Iterator[str]:
    """Yield what the search found, as sentences."""
    known, failing = result.bracket, result.failing
    if result.problem:
        yield f"The search ended early: {result.problem}."
    if failing is None:
        if known.capacity is not None:
            yield f"Capacity: at least {rate_text(known.capacity)} operations per second, the highest rate tested."
    elif failing.is_no_limit:
        if known.capacity is None:
            yield "The capacity is unknown: nothing shows that the cluster limited the lowest rate."
        else:
            yield f"Capacity: at least {rate_text(known.capacity)} operations per second."
        yield _other_limit(result, failing)
    elif known.capacity is None:
        lowest = rate_text(failing.step.rate)
        hint = "(hint: begin at a lower rate, or after the nodes have warmed up)"
        yield f"The lowest rate, {lowest}/s, does not meet the objectives: {failing.verdict.text} {hint}."
    else:
        # If the search ended early, the rates between the two were not tried.
        ends = f"between {rate_text(known.capacity)} and {rate_text(failing.step.rate)}"
        capacity = ends if result.problem else rate_text(known.capacity)
        yield f"Capacity: {capacity} operations per second ({_interval_text(result)})."
        yield f"At {rate_text(failing.step.rate)}/s: {failing.verdict.text}."
    if failing is not None and failing.limited:
        yield f"Saturated first at {rate_text(failing.step.rate)}/s: {failing.limited}."
    if result.knee is not None:
        yield f"Knee: {rate_text(result.knee)} operations per second ({result.latency_column})."
    if result.steps and not result.has_response_time:
        yield f"Note: {NOT_INCLUDED}."


def _other_limit(result: SearchResult, failing: StepResult) -> str:
    """Return why a step that failed shows nothing about the cluster."""
    rate, verdict = rate_text(failing.step.rate), failing.verdict
    generator = f"the load generator, {result.generator}," if result.generator else "the load generator"
    if verdict.failure is Failure.NO_RESULT:
        return f"There is no verdict on {rate}/s: {verdict.text}."
    if verdict.failure is Failure.RATE:
        return f"{generator[0].upper()}{generator[1:]} did not achieve {rate}/s: {verdict.text}."
    return f"At {rate}/s, {generator} was saturated first: {verdict.text}."


def _interval_text(result: SearchResult) -> str:
    known = result.bracket
    if known.low is None or known.high is None:
        return "the verdicts are too uncertain for a 95% interval"
    return f"95% interval: {rate_text(known.low)} to {rate_text(known.high)}"
