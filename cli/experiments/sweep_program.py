"""The program behind `casstat sweep`: makes a run for each combination of parameters, and writes the results."""

import os
import secrets
import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from statistics import fmean

import click

from cli import run_folder
from cli.errors import CasstatError, echo, note
from cli.experiments import sweep_settings
from cli.experiments.experiment_runs import Experiment, draw_plots, set_aside_unfinished, settings_differences
from cli.experiments.sweep_results import Outcomes, facts_of, write_tables
from cli.experiments.sweep_settings import PlannedRun, SweepOptions
from cli.parameters.parameter_values import filled_except_hosts
from cli.process_setup import interruptible, open_standard_streams
from cli.record.command.command_runner import CommandRunner
from cli.record.record_program import RecordSettings, recorded_run
from cli.run_folder import FOLDER_VARIABLE, RUN_VARIABLE, run_folder_name
from collector.live.live_cluster import Plan
from collector.printable import count_text, excerpts, one_line, single_line
from collector.runs import parameter_sweep
from collector.runs.parameter_sweep import Sweep, SweepRun, SweptParameter
from collector.runs.run import accepted_name, command_name
from collector.runs.run_clock import RunClock
from exporters.charts.experiment_plots import sweep_plots
from exporters.results.sweep.sweep_output import plain_lines

# The exit status if a run failed.
RUN_FAILED = 1
SEED_BITS = 32
_SHOWN_CHARS = 80
# The estimated time that a run takes in addition to its duration, before the first run has ended.
OVERHEAD_S = 15.0


class _InterruptedError(Exception):
    """Ctrl-C has ended a run or the sweep."""


def sweep(options: SweepOptions) -> int:
    """Make all runs that are missing, and return the exit status: 1 if a run failed.

    Raises CasstatError, click.UsageError, click.Abort and KeyboardInterrupt.
    """
    sweep_settings.require_sound(options)
    _confirm(options)
    open_standard_streams()
    with interruptible(), opened_sweep(options) as (folder, begun):
        set_aside_unfinished(folder, {run.folder for run in begun.runs})
        return _Sweep(options, folder, begun).run()


def _confirm(options: SweepOptions) -> None:
    """Ask whether to make many runs. Raises click.UsageError, and click.Abort if the answer is no."""
    count = options.run_count
    if count <= sweep_settings.MAX_UNCONFIRMED or options.confirmed:
        return
    if not (os.isatty(0) and os.isatty(2)):
        raise click.UsageError(f"{count:,} runs (hint: use fewer values, or --yes)")
    click.confirm(f"{count:,} runs. Continue?", abort=True, err=True)


@contextmanager
def opened_sweep(options: SweepOptions) -> Iterator[tuple[Path, Sweep]]:
    """Create or resume a sweep; yield its directory and the sweep. Raises CasstatError."""
    planned = new_sweep(options, time.time())
    folder = options.record.folder or run_folder.default_folder(planned.name, planned.begin_s)
    with SWEEPS.opened(folder, planned, resume=options.resume) as begun:
        yield folder, begun


def new_sweep(options: SweepOptions, begin_s: float) -> Sweep:
    """Return a sweep without runs."""
    return Sweep(
        accepted_name(options.redactor.text(options.record.name or command_name(options.record.command))),
        begin_s,
        version("casstat"),
        parameter_sweep.redacted_parameters(options.parameters, options.redactor),
        options.settings,
        options.order,
        secrets.randbits(SEED_BITS),
        options.repeats,
        options.pause_s,
        options.items_per_op,
    )


def _read(folder: Path) -> Sweep:
    try:
        return parameter_sweep.read_sweep(folder)
    except (OSError, parameter_sweep.SweepFileError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CasstatError(f"{folder / parameter_sweep.FILE}: {reason}") from None


def _resumed(folder: Path, existing: Sweep, planned: Sweep) -> Sweep:
    """Return the sweep that a directory contains, with the planned repeats, pause and items per operation.

    Runs without a directory are forgotten, so that they are repeated.
    """
    runs = tuple(run for run in existing.runs if (folder / run.folder).is_dir())
    return replace(
        existing, repeats=planned.repeats, pause_s=planned.pause_s, items_per_op=planned.items_per_op, runs=runs
    )


def _differences(existing: Sweep, planned: Sweep) -> Iterator[str]:
    """Yield how an existing sweep differs from the planned one."""
    if existing.parameters != planned.parameters:
        before, after = map(_parameters_text, (existing.parameters, planned.parameters))
        before, after = excerpts(before, after, _SHOWN_CHARS)
        yield f"its parameters are {before} instead of {after}"
    yield from settings_differences(existing.settings, planned.settings)
    if existing.order != planned.order:
        yield f"its order is {existing.order} instead of {planned.order}"
    if existing.repeats > planned.repeats:
        yield f"it has {existing.repeats} repeats, and their number can only be raised"


def _parameters_text(parameters: Sequence[SweptParameter]) -> str:
    return single_line(" ".join(f"{parameter.name}={','.join(parameter.values)}" for parameter in parameters))


SWEEPS = Experiment("sweep", parameter_sweep.FILE, _read, parameter_sweep.write_sweep, _differences, _resumed)


class _Sweep:
    """A sweep in progress."""

    def __init__(self, options: SweepOptions, folder: Path, begun: Sweep) -> None:
        self._options = options
        self._folder = folder
        self._sweep = begun
        self._outcomes = Outcomes(begun)
        self._to_do = 0
        self._is_begun = False
        """Whether this process has begun a run."""

    def run(self) -> int:
        planned = self._planned()
        self._to_do = len(planned)
        if not planned:
            self._begin()
        self._write_tables()
        try:
            for number, run in enumerate(planned):
                if number:
                    time.sleep(self._options.pause_s)
                self._add(run, self._ended(run))
        except (_InterruptedError, KeyboardInterrupt):
            count = len(self._sweep.runs)
            note(
                f"interrupted after {count} of {count_text(self._sweep.run_count, 'run')}"
                f" (hint: continue with --resume -o {self._folder})"
            )
            raise KeyboardInterrupt from None
        table = self._outcomes.table(self._sweep)
        draw_plots(self._folder, self._sweep.name, facts_of(self._sweep), sweep_plots(table))
        for line in plain_lines(table):
            echo(line, err=True)
        echo(self._folder, err=True)
        return RUN_FAILED if any(row.failed for row in table.rows) else 0

    def _planned(self) -> list[PlannedRun]:
        """Return the runs that have not ended, in order, and add the others to the outcomes."""
        ended = {run.folder: run for run in self._sweep.runs}
        combinations = self._sweep.combinations()
        values = replace(self._sweep, parameters=self._options.parameters).combinations()
        planned = []
        for number, (index, repeat) in enumerate(self._sweep.schedule(), 1):
            published = combinations[index]
            folder = run_folder_name(index + 1, len(combinations), published, repeat)
            if folder in ended:
                self._outcomes.add(self._folder, index, ended[folder])
            else:
                planned.append(PlannedRun(number, index, values[index], published, repeat, folder))
        return planned

    def _add(self, planned: PlannedRun, run: SweepRun) -> None:
        """Save a run that has ended, and write the results. Raises CasstatError."""
        self._sweep = replace(self._sweep, runs=(*self._sweep.runs, run))
        SWEEPS.save(self._folder, self._sweep)
        self._outcomes.add(self._folder, planned.index, run)
        self._write_tables()

    def _write_tables(self) -> None:
        write_tables(self._folder, self._sweep, self._outcomes.table(self._sweep))

    def _ended(self, planned: PlannedRun) -> SweepRun:
        """Make a run, with the commands before and after it.

        Raises _InterruptedError, KeyboardInterrupt and, if the first run cannot begin, CasstatError and
        click.UsageError.
        """
        settings = sweep_settings.record_settings(self._options, self._sweep.name, planned, self._folder)
        clock = RunClock()
        begin_s = clock.now_s()
        if self._is_begun or self._options.before:
            self._announce(planned)
        problem = self._beside("--before", self._options.before, planned, settings)
        if not problem:
            problem = self._recorded(planned, settings)
        after = self._beside("--after", self._options.after, planned, settings)
        texts = [self._options.redactor.text(text) for text in (problem, after)]
        for text in filter(None, texts):
            note(f"{planned.combination}: {text}")
        return SweepRun(planned.folder, begin_s, clock.now_s(), texts[0])

    def _begin(self) -> None:
        if not self._is_begun:
            order = ", in random order" if self._sweep.order == parameter_sweep.RANDOM and self._to_do > 1 else ""
            echo(f"{self._folder}: {count_text(self._sweep.run_count, 'run')}, {self._to_do} to do{order}", err=True)
        self._is_begun = True

    def _announce(self, planned: PlannedRun) -> None:
        self._begin()
        echo(progress_line(planned.number, self._sweep, planned.combination, planned.repeat), err=True)

    def _recorded(self, planned: PlannedRun, settings: RecordSettings) -> str:
        """Record a run; return why it failed, as one line, or "".

        Raises _InterruptedError and KeyboardInterrupt. Raises CasstatError if the first run cannot begin, and
        click.UsageError, because these would be raised for every run.
        """

        @contextmanager
        def around(_: Plan) -> Iterator[None]:
            # Nothing is printed before it is known that the first run can be recorded.
            if not self._is_begun:
                self._announce(planned)
            yield

        try:
            recorded = recorded_run(settings, around)
        except CasstatError as error:
            if not self._is_begun:
                raise
            return one_line(error)
        except OSError as error:
            return one_line(f"{error.filename or 'cannot record'}: {error.strerror}")
        if recorded.result.is_interrupted:
            raise _InterruptedError
        if recorded.result.exit_code:
            reason = f"the command failed with exit status {recorded.result.exit_code}"
            return one_line(f"{reason}: {recorded.result.problem}" if recorded.result.problem else reason)
        return ""

    def _beside(self, option: str, words: tuple[str, ...], planned: PlannedRun, settings: RecordSettings) -> str:
        """Run the command of --before or --after; return why it failed, or "". Raises _InterruptedError."""
        if not words:
            return ""
        environ = {RUN_VARIABLE: settings.name or "", FOLDER_VARIABLE: str((self._folder / planned.folder).absolute())}
        try:
            result = CommandRunner(
                filled_except_hosts(words, planned.values), _NoLog(), {**os.environ, **environ}
            ).run()
        except OSError as error:
            return f"{option}: {error.strerror}"
        if result.is_interrupted:
            raise _InterruptedError
        if result.exit_code:
            return f"{option}: {result.problem or f'exit status {result.exit_code}'}"
        return ""


class _NoLog:
    """Keeps nothing of a command's output, which is passed through."""

    def write(self, _data: bytes, _stream: Hashable = 1, /) -> None:
        """Discard output."""


def progress_line(number: int, sweep: Sweep, combination: str, repeat: int) -> str:
    """Return the line that announces a run; `number` is its number, counted from 1."""
    repeats = f", repeat {repeat}" if sweep.repeats > 1 else ""
    remaining = remaining_s(sweep)
    left = "" if remaining is None else f" … {duration_text(remaining)} left"
    return f"[{number}/{sweep.run_count}] {combination}{repeats}{left}"


def remaining_s(sweep: Sweep) -> float | None:
    """Return the estimated time until the sweep ends, in seconds; None if it cannot be estimated."""
    count = sweep.run_count - len(sweep.runs)
    # How long failed runs took matters only if none succeeded.
    ended = [run for run in sweep.runs if not run.problem] or sweep.runs
    times_s = [run.end_s - run.begin_s for run in ended]
    if not times_s and sweep.settings.duration_s is not None:
        times_s = [sweep.settings.duration_s + sweep.settings.cool_down_s + OVERHEAD_S]
    return count * fmean(times_s) + max(0, count - 1) * sweep.pause_s if times_s else None


def duration_text(seconds: float) -> str:
    """Return a duration such as 50 s, 41 min or 3 h 5 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
