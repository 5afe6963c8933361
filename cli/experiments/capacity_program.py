"""The program behind `casstat capacity`: runs steps at increasing rates until the highest rate is found.

The directory of a search has its settings and steps in `capacity.json`, and a run per step.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from shlex import join

import click

from cli import run_folder
from cli.errors import CasstatError, echo, errors_as
from cli.experiments import experiment_runs
from cli.experiments.capacity_steps import RecordedStep, Settling, recorded_step
from cli.experiments.experiment_runs import Experiment
from cli.parameters import parameter_values
from cli.parameters.parameter_values import PlaceholderError, filled, filled_except_hosts, placeholders, require_match
from cli.process_setup import interruptible, open_standard_streams
from cli.record.record_program import Around, RecordedRun, RecordSettings, recorded_run, redactor_of, require_valid
from cli.run_folder import RUNS_SUBFOLDER, STATE_FILE
from collector.file_access import file_errors, write_json
from collector.live.live_cluster import Plan
from collector.printable import one_line
from collector.runs.parameter_sweep import SweepSettings, require_command
from collector.runs.run import accepted_name, command_name
from collector.stored_json import read_content, value_of
from exporters.charts.experiment_plots import capacity_plots
from exporters.results.capacity import capacity_output
from exporters.results.capacity.search import SearchPlan, SearchResult, Step, StepResult, search
from exporters.results.capacity.step_verdict import Failure, StepData, Verdict, rate_text, step_verdict
from exporters.results.summary.conditions import Condition, is_summary_column, similar_column

RATE, DURATION = "rate", "duration"
"""The placeholders: the rate in operations per second, and the length of a step in seconds."""
NOT_MET = 1
"""The exit status if no rate meets the objectives."""
INTERRUPTED = "interrupted"
SCHEMA_VERSION = 2


@dataclass(frozen=True)
class CompletedStep(Step):
    """A step that has been completed, and its directory, relative to that of the search."""

    folder: str

    @property
    def step(self) -> Step:
        return Step(self.rate, self.length_s, self.purpose)


@dataclass(frozen=True)
class SearchState:
    """What `capacity.json` contains."""

    settings: SweepSettings
    objectives: tuple[str, ...]
    plan: SearchPlan
    steps: tuple[CompletedStep, ...] = ()


@dataclass(frozen=True)
class CapacityOptions:
    """The options of `casstat capacity`; `record` has those that all steps have in common.

    settle_s    how long to wait after a step for the cluster's baseline.
    max_time_s  no step begins after this time; None if there is no limit.
    """

    record: RecordSettings
    plan: SearchPlan
    objectives: tuple[Condition, ...]
    settle_s: float
    max_time_s: float | None = None
    resume: bool = False


@dataclass(frozen=True)
class Recording:
    """How steps are recorded and read; tests replace these functions."""

    record: Callable[[RecordSettings, Around], RecordedRun] = recorded_run
    read: Callable[[Path], RecordedStep] = recorded_step


def capacity(options: CapacityOptions, recording: Recording = Recording()) -> int:
    """Search for the capacity, and return the exit status: 0 if a rate meets the objectives.

    Raises CasstatError, click.UsageError and KeyboardInterrupt.
    """
    _require_sound(options)
    open_standard_streams()
    begin_s = time.time()
    redactor = redactor_of(options.record, (RATE, DURATION))
    generator = accepted_name(redactor.text(command_name(options.record.command)))
    name = accepted_name(redactor.text(options.record.name)) if options.record.name else generator
    folder = options.record.folder or run_folder.default_folder(name, begin_s)
    state = SearchState(
        experiment_runs.common_settings(options.record, redactor),
        tuple(objective.text for objective in options.objectives),
        options.plan,
    )
    with interruptible(), SEARCHES.opened(folder, state, resume=options.resume) as begun:
        experiment_runs.set_aside_unfinished(folder, {step.folder for step in begun.steps})
        return _Search(options, recording, name, generator, folder, begun).run()


def _require_sound(options: CapacityOptions) -> None:
    """Check the options before anything starts. Raises click.UsageError and CasstatError."""
    record = options.record
    require_valid(record)
    hosts = parameter_values.HOST_PLACEHOLDERS if record.client_hosts else ()
    with errors_as(click.UsageError, PlaceholderError):
        require_match(record.command, [RATE], others=[DURATION, *hosts], option="")
        filled(record.clients, {RATE: "", DURATION: ""})
    for objective in options.objectives:
        if not is_summary_column(objective.column):
            similar = similar_column(objective.column)
            hint = f"did you mean {similar}?" if similar else "docs/runs.md lists the columns"
            raise click.UsageError(f"--objective '{objective.text}': unknown column {objective.column} (hint: {hint})")
    if options.plan.confirmation_s < options.plan.step_s:
        raise click.UsageError("--confirm must be at least as long as --step")
    if options.max_time_s is not None and options.max_time_s < record.warm_up + options.plan.step_s:
        raise click.UsageError("--max-time must be at least as long as a step with its warm-up")
    if not record.client_hosts and shutil.which(record.command[0]) is None:
        raise CasstatError(f"{one_line(record.command[0])}: command not found")


def _write_state(folder: Path, state: SearchState) -> None:
    """Replace the state in a directory. Raises OSError."""
    write_json(folder / STATE_FILE, {"schema_version": SCHEMA_VERSION, **asdict(state)})


def _read_state(folder: Path) -> SearchState:
    """Read the state of a search. Raises CasstatError."""
    path = folder / STATE_FILE

    def failure(reason: str) -> CasstatError:
        return CasstatError(f"{path}: not the state of a search: {reason} (hint: start a new one with another -o)")

    with file_errors(path, CasstatError):
        content = read_content(path, failure)
    if isinstance(content, dict) and content.get("schema_version") != SCHEMA_VERSION:
        raise CasstatError(f"{path}: written by another version of casstat")
    return value_of(content, SearchState, failure, lambda state: require_command(state.settings))


def _differences(saved: SearchState, wanted: SearchState) -> Iterator[str]:
    """Yield how a saved search differs from the wanted one."""
    yield from experiment_runs.settings_differences(saved.settings, wanted.settings)
    if saved.objectives != wanted.objectives:
        yield f"its objectives are '{', '.join(saved.objectives)}' instead of '{', '.join(wanted.objectives)}'"
    if saved.plan != wanted.plan:
        yield "its rates or step lengths are others"


SEARCHES = Experiment("search", STATE_FILE, _read_state, _write_state, _differences)


class _Search:
    """A search in progress."""

    def __init__(
        self,
        options: CapacityOptions,
        recording: Recording,
        name: str,
        generator: str,
        folder: Path,
        state: SearchState,
    ) -> None:
        self._options = options
        self._recording = recording
        self._name = name
        self._generator = generator
        self._folder = folder
        self._state = state
        self._settling = Settling(options.settle_s)
        self._begin_s = time.monotonic()
        self._by_rate: dict[float, list[StepData]] = {}
        self._results: list[StepResult] = []
        self._has_header = False

    def run(self) -> int:
        """Run the steps that are missing, and print and write the result; return the exit status."""
        problem = self._search()
        result = SearchResult(self._options.objectives, self._results, problem, self._generator)
        for line in capacity_output.conclusions(result):
            echo(line)
        _write_results(self._folder, self._name, self._state, result)
        echo(self._folder, err=True)
        if problem == INTERRUPTED:
            raise KeyboardInterrupt
        return 0 if result.bracket.capacity is not None else NOT_MET

    def _search(self) -> str:
        """Run the steps; return why the search ended early, or "". Raises CasstatError and click.UsageError."""
        running = search(self._options.plan)
        saved = list(self._state.steps)
        step = next(running)
        while True:
            try:
                if saved and saved[0].step == step:
                    name = saved.pop(0).folder
                else:
                    saved.clear()
                    if self._results and self._is_out_of_time(step):
                        return f"the time limit of {self._options.max_time_s:g} s"
                    name = self._recorded(step)
                verdict = self._judged(step, name)
                if self._settling.is_interrupted:
                    return INTERRUPTED
                step = running.send(verdict)
            except KeyboardInterrupt:
                return INTERRUPTED
            except StopIteration:
                return ""

    def _is_out_of_time(self, step: Step) -> bool:
        limit_s = self._options.max_time_s
        ends_s = time.monotonic() - self._begin_s + self._options.record.warm_up + step.length_s
        return limit_s is not None and ends_s > limit_s

    def _recorded(self, step: Step) -> str:
        """Run a step; return its directory, relative to that of the search.

        Raises CasstatError, click.UsageError and KeyboardInterrupt.
        """
        number = len(self._results) + 1
        name = f"{RUNS_SUBFOLDER}/{number:02}-{rate_text(step.rate)}"

        @contextmanager
        def around(plan: Plan) -> Iterator[None]:
            # Nothing is printed before it is known that the first step can be recorded.
            self._show_header()
            if not self._options.record.quiet:
                echo(capacity_output.step_text(number, step, self._options.record.warm_up), err=True)
            with self._settling.around(plan):
                yield

        result = self._recording.record(self._settings(step, name), around).result
        if result.is_interrupted:
            raise KeyboardInterrupt
        if result.exit_code and not self._results:
            reason = result.problem or f"exit status {result.exit_code}"
            raise CasstatError(
                one_line(
                    f"the command failed at the first rate: {reason} (hint: see {self._folder / name}/command.log)"
                )
            )
        completed = CompletedStep(**vars(step), folder=name)
        self._state = replace(self._state, steps=(*self._state.steps, completed))
        SEARCHES.save(self._folder, self._state)
        return name

    def _show_header(self) -> None:
        if not self._has_header:
            echo(capacity_output.HEADER)
        self._has_header = True

    def _settings(self, step: Step, name: str) -> RecordSettings:
        record = self._options.record
        length_s = record.warm_up + step.length_s
        rate = rate_text(step.rate / max(len(record.client_hosts), 1))
        values = {RATE: rate, DURATION: rate_text(length_s)}
        has_duration = DURATION in placeholders(record.command)
        return replace(
            record,
            command=filled_except_hosts(record.command, values),
            clients=filled(record.clients, values),
            name=accepted_name(f"{self._name} {rate_text(step.rate)}/s"),
            duration=None if has_duration else length_s,
            load_s=length_s if has_duration else None,
            folder=self._folder / name,
            # The line of the step follows; a summary would hide the table.
            has_summary=False,
        )

    def _judged(self, step: Step, name: str) -> Verdict:
        """Return the verdict on all steps at a rate that have a result, and print the line of the last one.

        If the last step has no result, there is no verdict. Raises CasstatError and click.UsageError.
        """
        recorded = self._recording.read(self._folder / name)
        if not self._results:
            if recorded.problem:
                raise CasstatError(f"the first step cannot be judged: {recorded.problem}")
            self._require_columns(recorded)
        reason = f"the command failed with exit status {recorded.exit_code}" if recorded.exit_code else recorded.problem
        if reason:
            verdict = Verdict(False, reason=reason, failure=Failure.NO_RESULT)
        else:
            steps = self._by_rate.setdefault(step.rate, [])
            steps.append(recorded.data)
            verdict = step_verdict(self._options.objectives, steps, step.rate)
        not_settled = self._settling.problem and f"not settled: {self._settling.problem}"
        result = StepResult(
            step,
            name,
            recorded.data.values,
            verdict,
            recorded.limited,
            by_client=not verdict.is_met and recorded.is_limited_by_client(verdict.failure),
            note="; ".join(filter(None, (not_settled, recorded.incomplete))),
        )
        self._results.append(result)
        self._show_header()
        shown = SearchResult(self._options.objectives, self._results)
        echo(capacity_output.step_line(len(self._results), result, shown.latency_column))
        return verdict

    def _require_columns(self, recorded: RecordedStep) -> None:
        """Raise CasstatError if the first step has no value for an objective."""
        values = recorded.data.values
        for objective in self._options.objectives:
            if not isinstance(values.get(objective.column), int | float):
                similar = get_close_matches(
                    objective.column, [name for name, cell in values.items() if cell is not None], 3
                )
                hint = f"similar columns: {', '.join(similar)}" if similar else "casstat runs show lists the columns"
                raise CasstatError(one_line(f"the first step has no value for {objective.column} (hint: {hint})"))


def _write_results(folder: Path, name: str, state: SearchState, result: SearchResult) -> None:
    """Write the tables and the plot; if the plot cannot be drawn, print why. Raises CasstatError."""
    experiment_runs.write_tables(
        folder,
        markdown=capacity_output.markdown_text(result, state.settings.command),
        csv=capacity_output.csv_text(result),
        json=capacity_output.json_text(result, state.settings.command),
    )
    facts = [
        f"load generator: {result.generator}",
        f"command: {join(state.settings.command)}",
        f"objectives: {', '.join(state.objectives)}",
    ]
    experiment_runs.draw_plots(folder, name, facts, capacity_plots(result))
