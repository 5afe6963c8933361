"""Overlays several runs, for `casstat plot`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from cli.errors import CasstatError, note
from cli.recordings.merge_grid import interval_for
from cli.recordings.merge_options import MergeSettings
from cli.recordings.merge_program import NoDataError, merged
from cli.recordings.run_defaults import read_run_in, results_in
from collector.merge.grid import SpanGrid
from collector.merge.merge_job import DEFAULT_S
from collector.printable import one_line
from collector.runs.run import TOTAL, RunPhase
from exporters.charts import merged_run
from exporters.charts.gnuplot_panel import MAX_RUNS
from exporters.charts.overlay.aligned_runs import PhaseRows, aligned, merged_phases
from exporters.charts.plot_data import PlotData


@dataclass(frozen=True)
class _OverlaidRun:
    """A run to overlay: its directory, its phases, and the longest interval of its recordings."""

    folder: Path
    name: str
    phases: Sequence[RunPhase]
    interval_s: float


def overlay_of(settings: MergeSettings) -> PlotData:
    """Return the rows of the runs at the paths, aligned by phase, for overlaid plots.

    Prints a note about each phase that some runs do not have. Raises CasstatError and click.UsageError.
    """
    _check_options(settings)
    runs = [_overlaid_run(folder) for folder in dict.fromkeys(settings.paths)]
    names = _common_phases(runs, settings.phase)
    length_s = sum(
        max(phase.end_s - phase.begin_s for run in runs for phase in run.phases if phase.name == name) for name in names
    )
    slowest = max(runs, key=lambda run: run.interval_s)
    interval_s = interval_for(settings, slowest.interval_s, slowest.name, length_s)
    phases, footer = {}, []
    for label, run in _labelled(runs).items():
        phases[label], items = _phases(settings, run, names, interval_s)
        footer.append(f"{label}: {', '.join(items)}")
    return aligned(phases, interval_s, footer)


def _check_options(settings: MergeSettings) -> None:
    """Raise click.UsageError for options that have no meaning for several runs."""
    if len(set(settings.paths)) > MAX_RUNS:
        raise click.UsageError(f"{len(set(settings.paths))} runs are too many for a plot (at most {MAX_RUNS})")
    for option, value in {
        "--from": settings.begin,
        "--until": settings.end,
        "--clock": settings.clocks or None,
    }.items():
        if value is not None:
            raise click.UsageError(f"{option} cannot be combined with several runs (hint: use --phase)")


def _overlaid_run(folder: Path) -> _OverlaidRun:
    """Return the run in a directory. Raises CasstatError."""
    run = read_run_in(folder)
    if run.end_s is None:
        raise CasstatError(f"{folder}: the run has not ended (hint: run 'casstat fetch --recover {folder}')")
    intervals_s = [node.interval_s for node in run.nodes if node.interval_s is not None]
    return _OverlaidRun(
        folder,
        run.name,
        run.phases or (RunPhase(TOTAL, run.begin_s, run.end_s),),
        max(intervals_s, default=DEFAULT_S),
    )


def _common_phases(runs: Sequence[_OverlaidRun], wanted: str | None) -> list[str]:
    """Return the names of the phases that all runs have, or only the one that the user chose.

    Prints a note about each phase that some runs do not have. Raises CasstatError and click.BadParameter.
    """
    of_runs = [[phase.name for phase in run.phases] for run in runs]
    common = [name for name in of_runs[0] if all(name in names for names in of_runs)]
    if wanted is not None:
        if wanted not in common:
            choice = one_line(", ".join(common)) or "none"
            raise click.BadParameter(
                f"not all runs have a phase '{one_line(wanted)}' (phases of all runs: {choice})", param_hint="--phase"
            )
        return [wanted]
    if not common:
        raise CasstatError("the runs have no phase in common (hint: see 'casstat runs show DIR')")
    for name in dict.fromkeys(name for names in of_runs for name in names if name not in common):
        note(f"phase '{one_line(name)}' is not shown, because not all runs have it")
    return common


def _labelled(runs: Sequence[_OverlaidRun]) -> Mapping[str, _OverlaidRun]:
    """Return the runs by label: their names, else the names of their directories, else the directories' paths."""
    for labels in ([run.name for run in runs], [run.folder.resolve().name for run in runs]):
        if len(set(labels)) == len(runs):
            return dict(zip(distinguishing_words(labels), runs, strict=True))
    return {str(run.folder): run for run in runs}


def distinguishing_words(names: Sequence[str]) -> list[str]:
    """Return distinct names without the words that all of them contain, such as the parameters that runs share.

    Names stay as they are if a name would be empty, or equal to another one.
    """
    words = [name.split() for name in names]
    common = set(words[0]).intersection(*words[1:])
    short = [" ".join(word for word in name if word not in common) for name in words]
    return short if all(short) and len(set(short)) == len(names) else [*names]


def _phases(
    settings: MergeSettings, run: _OverlaidRun, names: Sequence[str], interval_s: float
) -> tuple[list[PhaseRows], list[str]]:
    """Return the rows of these phases of a run, and the items of its footer.

    Raises CasstatError and click.UsageError.
    """
    by_name = {phase.name: phase for phase in run.phases}
    phases = sorted((by_name[name] for name in names), key=lambda phase: phase.begin_s)
    grid = SpanGrid(interval_s, spans=tuple((phase.begin_s, phase.end_s) for phase in phases))
    try:
        result, choice = merged(
            replace(settings, paths=(run.folder,), phase=None), merged_run.node_rows, grid=grid, quiet=True
        )
    except NoDataError as error:
        raise CasstatError(f"{run.folder}: {error}") from None
    results = results_in(run.folder)
    rows = {phase.name: phase for phase in merged_phases(result, choice, grid, phases, results)}
    estimated = ["client times estimated"] if any(client.estimated_clock for client in results) else []
    return [rows[name] for name in names], [*merged_run.footer(result), *estimated]
