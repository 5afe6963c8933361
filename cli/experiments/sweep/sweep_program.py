"""The program behind `casstat sweep`: makes a run for each combination of parameters, and writes the results."""

import os
import signal
import time
from collections.abc import Hashable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import click

from cli.errors import CasstatError, echo, note
from cli.experiments.sweep.sweep_folder import opened_sweep, save
from cli.experiments.sweep.sweep_progress import progress_line
from cli.experiments.sweep.sweep_results import Outcomes, draw_plots, write_tables
from cli.experiments.sweep.sweep_settings import (
    MAX_UNCONFIRMED,
    SweepOptions,
    combination_text,
    record_settings,
    require_sound,
)
from cli.parameters.parameter_values import filled_except_hosts
from cli.run_folder import FOLDER_VARIABLE, RUN_VARIABLE, run_folder_name
from cli.runs.command.command_runner import CommandRunner
from cli.runs.command.signal_handlers import handling
from cli.runs.command.standard_streams import open_standard_streams
from cli.runs.record_program import RecordSettings, recorded_run
from cli.runs.unfinished_runs import set_aside_unfinished
from collector.live.live_cluster import Plan
from collector.printable import count_text, one_line
from collector.runs.parameter_sweep import RANDOM, Sweep, SweepRun
from collector.runs.run_clock import RunClock
from exporters.results.sweep.sweep_output import plain_lines

# The exit status if a run failed.
RUN_FAILED = 1


class _InterruptedError(Exception):
    """Ctrl-C has ended a run or the sweep."""


@dataclass(frozen=True)
class _PlannedRun:
    """A run of a sweep that has not ended: its number in the sweep, its combination, its repeat and its directory.

    published  the values of the combination without secrets.
    """

    number: int
    index: int
    values: dict[str, str]
    published: dict[str, str]
    repeat: int
    folder: str


def sweep(options: SweepOptions) -> int:
    """Make all runs that are missing, and return the exit status: 1 if a run failed.

    Raises CasstatError, click.UsageError, click.Abort and KeyboardInterrupt.
    """
    require_sound(options)
    _confirm(options)
    open_standard_streams()
    with ExitStack() as stack:
        # Treat these signals like Ctrl-C.
        stack.enter_context(handling({signal.SIGTERM: _interrupt, signal.SIGHUP: _interrupt}))
        folder, begun = stack.enter_context(opened_sweep(options))
        set_aside_unfinished(folder, {run.folder for run in begun.runs})
        return _Sweep(options, folder, begun).run()


def _confirm(options: SweepOptions) -> None:
    """Ask whether to make many runs. Raises click.UsageError, and click.Abort if the answer is no."""
    count = options.run_count
    if count <= MAX_UNCONFIRMED or options.confirmed:
        return
    if not (os.isatty(0) and os.isatty(2)):
        raise click.UsageError(f"{count:,} runs (hint: use fewer values, or --yes)")
    click.confirm(f"{count:,} runs. Continue?", abort=True, err=True)


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
        is_first = True
        try:
            for run in planned:
                if not is_first:
                    time.sleep(self._options.pause_s)
                is_first = False
                self._add(run, self._ended(run))
        except (_InterruptedError, KeyboardInterrupt):
            count = len(self._sweep.runs)
            note(
                f"interrupted after {count} of {count_text(self._sweep.run_count, 'run')}"
                f" (hint: continue with --resume -o {self._folder})"
            )
            raise KeyboardInterrupt from None
        table = self._outcomes.table(self._sweep)
        draw_plots(self._folder, self._sweep, table)
        for line in plain_lines(table):
            echo(line, err=True)
        echo(self._folder, err=True)
        return RUN_FAILED if any(row.failed for row in table.rows) else 0

    def _planned(self) -> list[_PlannedRun]:
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
                planned.append(_PlannedRun(number, index, values[index], published, repeat, folder))
        return planned

    def _add(self, planned: _PlannedRun, run: SweepRun) -> None:
        """Save a run that has ended, and write the results. Raises CasstatError."""
        self._sweep = replace(self._sweep, runs=(*self._sweep.runs, run))
        save(self._folder, self._sweep)
        self._outcomes.add(self._folder, planned.index, run)
        self._write_tables()

    def _write_tables(self) -> None:
        write_tables(self._folder, self._sweep, self._outcomes.table(self._sweep))

    def _ended(self, planned: _PlannedRun) -> SweepRun:
        """Make a run, with the commands before and after it.

        Raises _InterruptedError, KeyboardInterrupt and, if the first run cannot begin, CasstatError and
        click.UsageError.
        """
        combination = combination_text(planned.published)
        folder = self._folder / planned.folder
        settings = record_settings(
            self._options, self._sweep, planned.values, planned.published, planned.repeat, folder
        )
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
            note(f"{combination}: {text}")
        return SweepRun(planned.folder, begin_s, clock.now_s(), texts[0])

    def _begin(self) -> None:
        if not self._is_begun:
            order = ", in random order" if self._sweep.order == RANDOM and self._to_do > 1 else ""
            echo(f"{self._folder}: {count_text(self._sweep.run_count, 'run')}, {self._to_do} to do{order}", err=True)
        self._is_begun = True

    def _announce(self, planned: _PlannedRun) -> None:
        self._begin()
        combination = combination_text(planned.published)
        echo(progress_line(planned.number, self._sweep, combination, planned.repeat), err=True)

    def _recorded(self, planned: _PlannedRun, settings: RecordSettings) -> str:
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

    def _beside(self, option: str, words: tuple[str, ...], planned: _PlannedRun, settings: RecordSettings) -> str:
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


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
