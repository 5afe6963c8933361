"""The end of a step of a search: waits until the cluster is idle again, and reads what the step's run recorded."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cli.errors import CasstatError, note
from cli.recordings.recording_arguments import results_in
from cli.recordings.views import NoDataError, Step, begun
from cli.run_folder import LOG_FILE
from cli.runs.run_saturation import phase_data, saturation_of
from cli.runs.run_summary import SUMMARY_FILE, attempt, measured_phases, read_summaries
from cli.runs.run_views import RunViews, run_views
from collector.live.live_cluster import Plan
from collector.printable import local_time, one_line
from collector.runs.run import TOTAL, Run, RunPhase, step_text
from exporters.live.frame import Frame, History, LiveFrames, Wanted
from exporters.live.live_columns import value
from exporters.results.capacity.step_verdict import Failure, StepData
from exporters.results.comparison.amounts import ALL
from exporters.results.saturation.saturation import GENERATOR, Saturation
from exporters.results.summary.phase_summary import PhaseSummary, coverage_texts, time_of_day

DEFAULT_INTERVAL_S = 1.0
SETTLING_COLUMNS = (
    "compactions_pending",
    "flush_pending",
    "hints_per_s",
    "mutation_stage_pending",
    "native_transport_pending",
    "read_stage_pending",
)
"""The columns that must be back at their baseline."""
BASELINE_FRAMES = 2
"""The number of intervals of the baseline; rates are known from the second one on."""
BASELINE_WAIT_S = 10.0
SLACK = 1.0
"""A value may exceed its baseline by this much, because a few tasks are always pending."""
POLL_S = 0.5


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
    views = run_views(folder)
    run = views.run
    if run.end_s is None or run.command is None or run.command.exit_code is None:
        raise CasstatError(f"{folder}: the run has not ended")
    phases, summaries = measured_phases(run), read_summaries(folder)[-1:]
    incomplete = [text for summary in summaries for text in coverage_texts(summary.incomplete, time_of_day)]
    complete_saturation, complete_data = begun(saturation_of(views)), begun(_data(views, phases, summaries))
    saturation = attempt(complete_saturation)
    try:
        data, problem = complete_data(), ""
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


def _data(views: RunViews, phases: Sequence[RunPhase], summaries: Sequence[PhaseSummary]) -> Step[StepData]:
    """Return the data of the measured phases together. Raises CasstatError and click.UsageError."""
    if not phases or not summaries:
        yield
        return StepData({}, {})
    whole = RunPhase(TOTAL, phases[0].begin_s, phases[-1].end_s)
    interval_s = max((node.interval_s for node in views.run.nodes if node.interval_s), default=DEFAULT_INTERVAL_S)
    of_phases, _ = yield from phase_data(views.nodes, views.folder, [whole], interval_s, has_stated=False)
    data = of_phases[TOTAL]
    kind = next(iter(data.client), "")
    return StepData(summaries[-1].values, data.bins(kind), data.server)


def live_frames(plan: Plan) -> LiveFrames:
    return LiveFrames(plan, Wanted(frozenset(SETTLING_COLUMNS)))


class Settling:
    """Measures the baseline before the first step, and waits for it after each one, for at most `limit_s`."""

    def __init__(
        self,
        limit_s: float,
        connect: Callable[[Plan], LiveFrames] = live_frames,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit_s = limit_s
        self._connect = connect
        self._now = now
        self._baseline: Mapping[str, float] = {}
        self.is_interrupted = False
        """Whether Ctrl-C ended the wait."""
        self.problem = ""
        """What was not back at its baseline after the last step; otherwise ""."""

    @contextmanager
    def around(self, plan: Plan) -> Iterator[None]:
        """Wait at the end of the block for the baseline, which is measured at the beginning of the first block."""
        frames = self._connect(plan)
        frames.start()
        try:
            if not self._baseline:
                self._baseline = self._measured(frames.history)
            yield
            try:
                self._wait(frames.history)
            except KeyboardInterrupt:
                self.is_interrupted = True
        finally:
            frames.stop()

    def _measured(self, history: History) -> dict[str, float]:
        """Return the highest value of each column in the first frames; a column without a value is left out."""
        ends_s = self._now() + BASELINE_WAIT_S
        while len(history.frames) < BASELINE_FRAMES and self._now() < ends_s:
            history.wait(history.number, POLL_S)
        baseline: dict[str, float] = {}
        for frame in history.frames:
            for name in SETTLING_COLUMNS:
                number = value(frame.cluster, name)
                if number is not None:
                    baseline[name] = max(number, baseline.get(name, 0.0))
        return baseline

    def _wait(self, history: History) -> None:
        """Wait until no value of a new frame exceeds its baseline. Prints a note if that takes too long."""
        ends_s = self._now() + self._limit_s
        number = history.number
        self.problem = ""
        while True:
            if history.wait(number, POLL_S):
                number = history.number
                self.problem = self._excess(history.frames[-1])
                if not self.problem:
                    return
            if self._now() >= ends_s:
                break
        if self.problem:
            note(f"not settled after {self._limit_s:g} s: {self.problem}")

    def _excess(self, frame: Frame) -> str:
        """Return the values that exceed their baseline; "" if there are none."""
        return ", ".join(
            f"{name} is {number:g} (baseline: {baseline:g})"
            for name, baseline in self._baseline.items()
            if (number := value(frame.cluster, name)) is not None and number > baseline + SLACK
        )
