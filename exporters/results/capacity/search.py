"""The search for the highest rate that meets all objectives, and its results.

Rates are multiplied by a factor until one fails, and the range between the last success and that failure is then halved
until it is narrow enough. Finally, the highest rate that met the objectives and the next higher one are confirmed by
longer steps, which are repeated if their verdict is uncertain.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor, log, log10, sqrt

from exporters.results.capacity.step_verdict import Failure, Verdict
from exporters.results.summary.conditions import Condition
from exporters.rows.columns import Cell

RAMP, HALVING, CONFIRMATION = "ramp", "bisection", "confirmation"
SIGNIFICANT_DIGITS = 3
REPEATS = 1
"""How often a confirmation with an uncertain verdict is repeated, each time for twice as long."""
MAX_STEPS = 30
"""The search ends after this many bisections and confirmations."""
MIN_KNEE_POINTS = 5
MIN_KNEE_RISE = 2.0
"""Beyond a knee, the latency rises to at least this many times that at the knee."""


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


@dataclass(frozen=True)
class StepResult:
    """A step that has been run.

    folder     the directory of its run, relative to that of the search.
    values     the columns of its summary.
    verdict    the verdict on all steps at its rate so far.
    limited    what was saturated first, as a sentence; "" if it is unknown.
    by_client  whether the load generator, rather than the cluster, kept the step from meeting the objectives: it was
               saturated first or, if it did not achieve its rate, nothing was.
    note       what was wrong with the step although it has a verdict; "" if nothing was.
    """

    step: Step
    folder: str
    values: Mapping[str, Cell]
    verdict: Verdict
    limited: str = ""
    by_client: bool = False
    note: str = ""

    @property
    def is_no_limit(self) -> bool:
        """Whether the step failed without showing that the cluster limited its rate."""
        return self.by_client or (not self.verdict.is_met and self.verdict.failure is Failure.NO_RESULT)


@dataclass(frozen=True)
class SearchResult:
    """The steps of a search, in the order in which they were run.

    problem    why it ended early; "" if it did not.
    generator  the name of the load generator.
    """

    objectives: Sequence[Condition]
    steps: Sequence[StepResult]
    problem: str = ""
    generator: str = ""

    @property
    def bracket(self) -> Bracket:
        """What the last step at each rate shows; one that failed for another reason is no upper end of the interval."""
        return bracket(
            {
                result.step.rate: replace(result.verdict, is_certain=False) if result.is_no_limit else result.verdict
                for result in self.steps
            }
        )

    @property
    def failing(self) -> StepResult | None:
        """The last step at the lowest rate that did not meet the objectives; None if there is none."""
        rate = self.bracket.failing
        return next((result for result in reversed(self.steps) if result.step.rate == rate), None)

    @property
    def has_response_time(self) -> bool:
        """Whether all latencies of clients include the time that requests waited before they were sent."""
        kinds = {result.values.get("client_latency") for result in self.steps if "client_latency" in result.values}
        return kinds == {"response"}

    @property
    def latency_column(self) -> str:
        """The column of the first objective on a latency; the 99th percentile of the clients if there is none."""
        columns = (objective.column for objective in self.objectives)
        return next((column for column in columns if column.endswith("_ms")), "client_p99_ms")

    @property
    def curve(self) -> list[tuple[float, float]]:
        """The latency at each rate, in ascending order of the rates; the last step at a rate counts."""
        cells = {result.step.rate: result.values.get(self.latency_column) for result in self.steps}
        return sorted((rate, float(cell)) for rate, cell in cells.items() if isinstance(cell, int | float))

    @property
    def knee(self) -> float | None:
        return knee_of(self.curve)


def knee_of(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the rate at the knee of points of rate and latency; None if there are too few points, or no knee.

    The knee is the point furthest below the line from the first point to the last, with both axes scaled to [0, 1]
    (Satopää et al., Finding a Kneedle in a Haystack, 2011). Latencies are on a logarithmic scale, so that a single very
    high one does not make all others look alike.
    """
    ordered = sorted(points)
    latencies = [latency for _, latency in ordered]
    if len(ordered) < MIN_KNEE_POINTS or not 0 < min(latencies) < max(latencies):
        return None
    first, last = ordered[0][0], ordered[-1][0]
    low, high = log(min(latencies)), log(max(latencies))
    distances = [(rate - first) / (last - first) - (log(latency) - low) / (high - low) for rate, latency in ordered]
    knee = distances.index(max(distances))
    # At the lowest rate, the latency may be high because the nodes are not warm.
    has_risen = max(latencies[knee:]) >= MIN_KNEE_RISE * latencies[knee]
    return ordered[knee][0] if distances[knee] > 0 and has_risen else None
