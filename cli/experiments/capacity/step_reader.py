"""Reads what a step's run recorded: its columns, its intervals, and what was saturated first."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.errors import CasstatError
from cli.recordings.merge_program import NoDataError
from cli.recordings.run_defaults import read_run_in, results_in
from cli.runs.command.command_log import LOG_FILE
from cli.runs.completed_summary import attempt
from cli.runs.phase_data import phase_data
from cli.runs.run_saturation import saturation_of
from cli.runs.run_summary import measured_phases
from cli.runs.summary_file import SUMMARY_FILE, read_summaries
from collector.printable import local_time, one_line
from collector.runs.run import TOTAL, Run, RunPhase
from collector.runs.run_texts import step_text
from exporters.results.capacity.evidence import StepData
from exporters.results.capacity.step_verdict import Failure
from exporters.results.comparison.amounts import ALL
from exporters.results.saturation.saturation import GENERATOR, Saturation
from exporters.results.summary.phase_summary import PhaseSummary, coverage_texts, time_of_day

DEFAULT_INTERVAL_S = 1.0


@dataclass(frozen=True)
class RecordedStep:
    """What the run of a step recorded.

    exit_code   that of its command.
    saturation  what was saturated first; None if that is unknown.
    problem     why there are no client results in its measured phases; "" if there are.
    incomplete  which nodes lack which intervals; "" if none do.
    """

    data: StepData
    exit_code: int
    saturation: Saturation | None
    problem: str = ""
    incomplete: str = ""

    @property
    def limited(self) -> str:
        """What was saturated first; "" if it is unknown."""
        if self.saturation is None or self.saturation.is_undetermined:
            return ""
        first = self.saturation.first
        return "nothing" if first is None else one_line(f"{first.resource.name} ({first.host}): {first.text}")

    def is_limited_by_client(self, failure: Failure) -> bool:
        """Return whether the load generator, rather than the cluster, is why the step failed.

        It is if it was saturated first. If it did not achieve its rate, it also is if nothing was saturated although
        everything was measured.
        """
        if self.saturation is None or self.saturation.is_undetermined:
            return False
        if self.saturation.first is None:
            return failure is Failure.RATE
        return self.saturation.first.resource is GENERATOR


def recorded_step(folder: Path) -> RecordedStep:
    """Read the run of a step. Raises CasstatError and click.UsageError."""
    run = read_run_in(folder)
    if run.end_s is None or run.command is None or run.command.exit_code is None:
        raise CasstatError(f"{folder}: the run has not ended")
    saturation = attempt(lambda: saturation_of(folder, run))
    phases, summaries = measured_phases(run), read_summaries(folder)[-1:]
    incomplete = [text for summary in summaries for text in coverage_texts(summary.incomplete, time_of_day)]
    try:
        data, problem = _data(folder, run, phases, summaries), ""
    except NoDataError:
        data, problem = StepData({}, {}), "no node was sampled in the measured phase"
    if not phases:
        problem = "the command ended within the warm-up"
    elif not summaries:
        problem = f"{folder / SUMMARY_FILE} has no summary of the measured phase"
    elif not problem and ALL not in data.client:
        problem = _problem(folder, run, phases)
    return RecordedStep(data, run.command.exit_code, saturation, problem, "; ".join(incomplete))


def _problem(folder: Path, run: Run, phases: Sequence[RunPhase]) -> str:
    """Return why a run has no client results in its measured phases. Raises CasstatError."""
    results = results_in(folder)
    spans = [span_s for result in results if (span_s := result.span_s) is not None]
    if not spans and run.clock_steps:
        # Then a result may have been refused, and the reason has been printed.
        steps = ", and ".join(map(step_text, run.clock_steps))
        return f"{steps}, and there is no result of the load generator, so what it achieved is unknown"
    if not spans:
        return (
            "no result of the load generator was recognised, so what it achieved is unknown"
            f" (hint: name its result with --client FILE; its output is in {folder / LOG_FILE})"
        )
    result, phase = (
        f"{local_time(begin_s, '%H:%M:%S')} to {local_time(end_s, '%H:%M:%S')}"
        for begin_s, end_s in (
            (min(begin_s for begin_s, _ in spans), max(end_s for _, end_s in spans)),
            (phases[0].begin_s, phases[-1].end_s),
        )
    )
    sources = ", ".join(result.source for result in results)
    return one_line(
        f"the load generator's result ({sources}), from {result}, has no interval inside the measured phase, from"
        f" {phase} (hint: check the warm-up, and whether the result has more than a total)"
    )


def _data(folder: Path, run: Run, phases: Sequence[RunPhase], summaries: Sequence[PhaseSummary]) -> StepData:
    """Return the data of the measured phases together. Raises CasstatError and click.UsageError."""
    if not phases or not summaries:
        return StepData({}, {})
    whole = RunPhase(TOTAL, phases[0].begin_s, phases[-1].end_s)
    interval_s = max((node.interval_s for node in run.nodes if node.interval_s), default=DEFAULT_INTERVAL_S)
    data = phase_data(folder, [whole], interval_s, has_stated=False)[0][TOTAL]
    kind = next(iter(data.client), "")
    return StepData(summaries[-1].values, data.bins(kind), data.server)
