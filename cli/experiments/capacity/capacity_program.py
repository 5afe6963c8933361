"""The program behind `casstat capacity`: runs steps at increasing rates until the highest rate is found."""

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

import click

from cli import run_folder
from cli.errors import CasstatError, echo
from cli.experiments.capacity.capacity_folder import SearchState, read_state, require_same, step_folder, write_state
from cli.experiments.capacity.capacity_results import write_results
from cli.experiments.capacity.settling import Settling
from cli.experiments.capacity.step_reader import RecordedStep, recorded_step
from cli.parameters.parameter_values import (
    HOST_PLACEHOLDERS,
    PlaceholderError,
    filled,
    filled_except_hosts,
    placeholders,
    require_match,
)
from cli.run_folder import try_lock
from cli.runs.command.signal_handlers import handling
from cli.runs.command.standard_streams import open_standard_streams
from cli.runs.common_settings import common_settings
from cli.runs.record_program import Around, RecordedRun, RecordSettings, recorded_run, redactor_of, require_valid
from cli.runs.unfinished_runs import set_aside_unfinished
from collector.live.live_cluster import Plan
from collector.printable import one_line
from collector.runs.run_texts import accepted_name, command_name
from exporters.results.capacity.capacity_output import HEADER, conclusions, step_line, step_text
from exporters.results.capacity.evidence import StepData
from exporters.results.capacity.search import SearchPlan, SearchResult, Step, StepResult, search
from exporters.results.capacity.step_verdict import Failure, Verdict, rate_text, step_verdict
from exporters.results.summary.conditions import Condition, is_summary_column, similar_column

RATE, DURATION = "rate", "duration"
"""The placeholders: the rate in operations per second, and the length of a step in seconds."""
NOT_MET = 1
"""The exit status if no rate meets the objectives."""
INTERRUPTED = "interrupted"


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
        common_settings(options.record, redactor),
        tuple(objective.text for objective in options.objectives),
        options.plan,
    )
    with ExitStack() as stack:
        stack.enter_context(handling({signal.SIGTERM: _interrupt, signal.SIGHUP: _interrupt}))
        if not options.resume:
            stack.enter_context(run_folder.created(folder))
        is_free = stack.enter_context(try_lock(folder / run_folder.LOCK_FILE, creating=True))
        if not is_free:
            raise CasstatError(f"{folder}: another process is searching there")
        if options.resume:
            saved = read_state(folder)
            require_same(saved, state, folder)
            state = saved
        else:
            run_folder.require_empty(folder)
        write_state(folder, state)
        set_aside_unfinished(folder, {name for _, name in state.steps})
        return _Search(options, recording, name, generator, folder, state).run()


def _require_sound(options: CapacityOptions) -> None:
    """Check the options before anything starts. Raises click.UsageError and CasstatError."""
    record = options.record
    require_valid(record)
    hosts = HOST_PLACEHOLDERS if record.client_hosts else ()
    try:
        require_match(record.command, [RATE], others=[DURATION, *hosts], option="")
        filled(record.clients, {RATE: "", DURATION: ""})
    except PlaceholderError as error:
        raise click.UsageError(str(error)) from None
    for objective in options.objectives:
        _require_column(objective)
    if options.plan.confirmation_s < options.plan.step_s:
        raise click.UsageError("--confirm must be at least as long as --step")
    if options.max_time_s is not None and options.max_time_s < record.warm_up + options.plan.step_s:
        raise click.UsageError("--max-time must be at least as long as a step with its warm-up")
    if not record.client_hosts and shutil.which(record.command[0]) is None:
        raise CasstatError(f"{one_line(record.command[0])}: command not found")


def _require_column(objective: Condition) -> None:
    """Raise click.UsageError unless a run may have the objective's column."""
    if not is_summary_column(objective.column):
        similar = similar_column(objective.column)
        hint = f"did you mean {similar}?" if similar else "docs/runs.md lists the columns"
        raise click.UsageError(f"--objective '{objective.text}': unknown column {objective.column} (hint: {hint})")


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
        for line in conclusions(result):
            echo(line)
        write_results(self._folder, self._name, self._state, result)
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
                if saved and saved[0][0] == step:
                    name = saved.pop(0)[1]
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
        name = step_folder(number, rate_text(step.rate))

        @contextmanager
        def around(plan: Plan) -> Iterator[None]:
            # Nothing is printed before it is known that the first step can be recorded.
            self._show_header()
            if not self._options.record.quiet:
                echo(step_text(number, step, self._options.record.warm_up), err=True)
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
        self._state = self._state.with_step(step, name)
        write_state(self._folder, self._state)
        return name

    def _show_header(self) -> None:
        if not self._has_header:
            echo(HEADER)
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
        latency_column = SearchResult(self._options.objectives, ()).latency_column
        self._show_header()
        echo(step_line(len(self._results), result, latency_column))
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


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
