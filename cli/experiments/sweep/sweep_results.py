"""Writes the results of a sweep: the tables after each run, and the plots at the end."""

from collections.abc import Sequence
from pathlib import Path
from shlex import join

import click

from cli.errors import CasstatError, note
from cli.experiments.sweep.run_measurement import run_values
from collector.file_access import replace_file
from collector.printable import count_text, local_time, one_line
from collector.runs.parameter_sweep import Sweep, SweepRun
from collector.runs.run_texts import command_name
from exporters.charts.all_plots import write
from exporters.charts.gnuplot_process import GnuplotError, draw
from exporters.charts.plot_data import PlotData
from exporters.charts.sweep_plots.sweep_plots import sweep_plots
from exporters.results.sweep.sweep_output import csv_text, json_text, markdown_text
from exporters.results.sweep.sweep_rows import RunOutcome, SweepTable, sweep_table

PLOTS_FOLDER = "plots"


class Outcomes:
    """The outcomes of the runs that have ended, by combination."""

    def __init__(self, sweep: Sweep) -> None:
        self._combinations = sweep.combinations()
        self._outcomes: list[list[RunOutcome]] = [[] for _ in self._combinations]

    def add(self, folder: Path, index: int, run: SweepRun) -> None:
        """Add a run of the combination with this index; `folder` is the sweep's directory."""
        if run.problem:
            self._outcomes[index].append(RunOutcome(None, run.problem))
            return
        try:
            outcome = RunOutcome(run_values(folder / run.folder))
        except CasstatError as error:
            outcome = RunOutcome(None, one_line(error))
        except click.ClickException as error:
            outcome = RunOutcome(None, one_line(error.format_message()))
        if outcome.problem:
            note(f"{run.folder}: {outcome.problem}")
        self._outcomes[index].append(outcome)

    def table(self, sweep: Sweep) -> SweepTable:
        return sweep_table(sweep.name, self._combinations, self._outcomes, sweep.repeats, sweep.items_per_op)


def write_tables(folder: Path, sweep: Sweep, table: SweepTable) -> None:
    """Write the results as Markdown, CSV and JSON. Raises CasstatError."""
    texts = {
        "results.md": markdown_text(table, _facts(sweep)),
        "results.csv": csv_text(table),
        "results.json": json_text(table),
    }
    try:
        for name, text in texts.items():
            replace_file(folder / name, text.encode(errors="replace"))
    except OSError as error:
        raise CasstatError(f"{error.filename or folder}: {error.strerror}") from None


def draw_plots(folder: Path, sweep: Sweep, table: SweepTable) -> None:
    """Draw the plots; if that fails, print why."""
    run = PlotData(sweep.name, 1.0, (), {}, footer=_facts(sweep))
    try:
        draw(write(run, folder / PLOTS_FOLDER, plots=sweep_plots(table)))
    except GnuplotError as error:
        note(str(error))
    except OSError as error:
        note(f"{error.filename or folder}: {error.strerror}")


def _facts(sweep: Sweep) -> Sequence[str]:
    settings = sweep.settings
    combinations = count_text(sweep.run_count // sweep.repeats, "combination")
    repeats = count_text(sweep.repeats, "run") if sweep.repeats > 1 else "one run"
    times = [f"{settings.duration_s:g} s each"] if settings.duration_s is not None else []
    times += [f"warm-up {settings.warm_up_s:g} s"] if settings.warm_up_s else []
    return [
        f"load generator: {command_name(settings.command)}",
        f"command: {join(settings.command)}",
        ", ".join([f"{combinations} with {repeats} of each", *times, f"{sweep.order} order"]),
        f"begun {local_time(sweep.begin_s)}, casstat {sweep.casstat}",
    ]
