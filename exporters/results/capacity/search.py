"""The search for the highest rate that meets all objectives.

Rates are multiplied by a factor until one fails, and the range between the last success and that failure is then halved
until it is narrow enough. Finally, the highest rate that met the objectives and the next higher one are confirmed by
longer steps, which are repeated if their verdict is uncertain.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from math import floor, log10, sqrt

from exporters.results.capacity.objective_verdict import Verdict

RAMP, HALVING, CONFIRMATION = "ramp", "bisection", "confirmation"
SIGNIFICANT_DIGITS = 3
REPEATS = 1
"""How often a confirmation with an uncertain verdict is repeated, each time for twice as long."""
MAX_STEPS = 30
"""The search ends after this many bisections and confirmations."""


@dataclass(frozen=True)
class SearchPlan:
    """The range of rates and the lengths of steps.

    factor     the ratio of successive rates of the ramp.
    precision  the search ends if the lowest failing rate exceeds the highest successful one by at most this share.
    """

    low: float
    high: float
    step_s: float = 30.0
    confirmation_s: float = 90.0
    factor: float = 2.0
    precision: float = 0.04


@dataclass(frozen=True)
class Step:
    """A step to run: its rate in operations per second, its length without warm-up, and its purpose."""

    rate: float
    length_s: float
    purpose: str


@dataclass(frozen=True)
class Bracket:
    """What the verdicts so far show.

    capacity   the highest rate that met the objectives, below all that did not; None if there is none.
    failing    the lowest rate that did not; None if there is none.
    low, high  the confidence interval of the capacity: the highest rate up to `capacity` that certainly met the
               objectives, and the lowest from `failing` on that certainly did not; None if there is none.
    """

    capacity: float | None
    failing: float | None
    low: float | None
    high: float | None


def bracket(verdicts: Mapping[float, Verdict]) -> Bracket:
    """Return what the last verdict on each rate shows.

    A success at a higher rate than a failure is ignored.
    """
    failing = min((rate for rate, verdict in verdicts.items() if not verdict.is_met), default=None)
    below = [rate for rate, verdict in verdicts.items() if verdict.is_met and (failing is None or rate < failing)]
    certain = [rate for rate in below if verdicts[rate].is_certain]
    above = [rate for rate, verdict in verdicts.items() if not verdict.is_met and verdict.is_certain]
    return Bracket(max(below, default=None), failing, max(certain, default=None), min(above, default=None))


def rounded_rate(rate: float) -> float:
    """Return a rate rounded to SIGNIFICANT_DIGITS digits."""
    return round(rate, SIGNIFICANT_DIGITS - 1 - floor(log10(rate)))


def search(plan: SearchPlan) -> Generator[Step, Verdict, dict[float, Verdict]]:
    """Yield the steps to run, receive the verdict on all steps at the step's rate, and return the last verdicts."""
    verdicts: dict[float, Verdict] = {}
    yield from _ramp(plan, verdicts)
    confirmed: set[float] = set()
    for _ in range(MAX_STEPS):
        if (middle := _middle(plan, verdicts)) is not None:
            verdicts[middle] = yield Step(middle, plan.step_s, HALVING)
        elif (rate := _unconfirmed(plan, verdicts, confirmed)) is not None:
            confirmed.add(rate)
            for repeat in range(REPEATS + 1):
                verdicts[rate] = yield Step(rate, plan.confirmation_s * 2**repeat, CONFIRMATION)
                if verdicts[rate].is_certain:
                    break
        else:
            break
    return verdicts


def _ramp(plan: SearchPlan, verdicts: dict[float, Verdict]) -> Generator[Step, Verdict, None]:
    rate = plan.low
    while True:
        verdicts[rate] = yield Step(rate, plan.step_s, RAMP)
        if rate >= plan.high or not verdicts[rate].is_met:
            break
        rate = min(rounded_rate(rate * plan.factor), plan.high)


def _middle(plan: SearchPlan, verdicts: Mapping[float, Verdict]) -> float | None:
    """Return the geometric mean of the bracket; None if the bracket is narrow enough."""
    known = bracket(verdicts)
    if known.capacity is None or known.failing is None or known.failing <= known.capacity * (1 + plan.precision):
        return None
    middle = rounded_rate(sqrt(known.capacity * known.failing))
    return middle if known.capacity < middle < known.failing else None


def _unconfirmed(plan: SearchPlan, verdicts: Mapping[float, Verdict], confirmed: set[float]) -> float | None:
    """Return the next rate to confirm; None if there is none.

    Both ends of the bracket are confirmed. If the verdict on one remains uncertain, and no rate near it has a certain
    verdict, the rates next to it are tried.
    """
    known = bracket(verdicts)
    if known.capacity is None:
        return None
    ratio = 1 + plan.precision
    above = known.failing
    if above is None and known.capacity < plan.high:
        above = min(rounded_rate(known.capacity * ratio), plan.high)
    for end in (known.capacity, above):
        if end is not None and end not in confirmed:
            return end
    is_narrow = known.low is not None and known.low * ratio**2 >= known.capacity
    lower = [] if is_narrow else [known.capacity / ratio**power for power in (1, 2, 3)]
    is_narrow = above is None or (known.high is not None and known.high <= above * ratio**2)
    higher = [] if is_narrow or above is None else [above * ratio**power for power in (1, 2, 3)]
    candidates = [rounded_rate(rate) for rate in (*lower, *higher)]
    return next((rate for rate in candidates if plan.low <= rate <= plan.high and rate not in confirmed), None)
