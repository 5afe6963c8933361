"""The results of steps and of a search, as rows and as text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from exporters.results.capacity.knee import knee_of
from exporters.results.capacity.objective_verdict import Failure, Verdict
from exporters.results.capacity.search import Bracket, Step, bracket
from exporters.results.summary.conditions import Condition
from exporters.rows.formulas import Cell


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
