"""Draws the plots of recordings, or of several runs in one, for `casstat plot` and `casstat record`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.errors import CasstatError, errors_as, note
from cli.parameters.recording_options import output_folder
from cli.recordings.merge_program import interval_for, recording_views
from cli.recordings.recording_arguments import MergeSettings, read_run_in, results_in, run_at
from cli.recordings.views import NoDataError, Step, View, Views, completed
from cli.run_folder import recovery_hint
from collector.merge.grid import SpanGrid
from collector.merge.merge_job import DEFAULT_S
from collector.printable import count_text, one_line
from collector.runs.run import TOTAL, WARM_UP, Run, RunPhase
from collector.runs.run_file import is_run
from exporters.charts import merged_plot_data
from exporters.charts.gnuplot_panel import MAX_RUNS
from exporters.charts.merged_plot_data import PhaseRows, aligned, merged_phases
from exporters.charts.plot_data import PlotData

if TYPE_CHECKING:
    from exporters.charts.all_plots import Plot

# With more points, lines look like bands of noise.
POINTS = 300
# A recording spans more points than this only if --interval is very short, or if the clock was wrong while recording.
MAX_POINTS = 1_000_000


@dataclass(frozen=True)
class Drawing:
    """What to draw.

    only       the names of the plots; empty for all.
    size       width and height in pixels; None for each plot's default.
    warm_up_s  the duration of the warm-up, which is shaded and excluded from percentiles; None for the run's.
    """

    only: Sequence[str] = ()
    theme: str = "light"
    size: tuple[int, int] | None = None
    warm_up_s: float | None = None


def plot_into(settings: MergeSettings, folder: Path, drawing: Drawing) -> Iterator[Path]:
    """Write the plots to a directory; yield the paths of the drawn files.

    Prints notes about the recordings. Raises CasstatError and click.UsageError.
    """
    from exporters.charts.all_plots import OVERLAYS, PLOTS

    is_overlay = len(set(settings.paths)) > 1 and all(map(is_run, settings.paths))
    plots = OVERLAYS if is_overlay else PLOTS
    known = [plot.name for plot in plots]
    for name in drawing.only:
        if name not in known:
            raise click.BadParameter(
                f"unknown plot '{name}' (hint: choose from {', '.join(known)})", param_hint="--only"
            )
    if not is_overlay:
        run = completed(_single_run(recording_views(settings), settings, drawing))
    elif drawing.warm_up_s is None:
        run = _overlaid(settings)
    else:
        raise click.UsageError("--warm-up cannot be combined with several runs")
    yield from _begun(run, plots, folder, drawing)()


def plots(views: Views, settings: MergeSettings, folder: Path) -> Step[Callable[[], list[Path]]]:
    """Begin to draw all plots of a run; return a function that waits for them, and returns the paths of the files.

    Both raise CasstatError; the step also raises click.UsageError.
    """
    from exporters.charts.all_plots import PLOTS

    run = yield from _single_run(views, settings, Drawing())
    return _begun(run, PLOTS, folder, Drawing())


def _begun(run: PlotData, plots: "Sequence[Plot]", folder: Path, drawing: Drawing) -> Callable[[], list[Path]]:
    """Write the scripts of plots to a directory, and begin to draw them; return as `plots`. Raises CasstatError."""
    from exporters.charts.all_plots import write
    from exporters.charts.gnuplot_page import GnuplotError, begin_drawing

    with output_folder(folder):
        scripts = write(run, folder, plots=plots, theme=drawing.theme, only=drawing.only or None, size=drawing.size)
    wait = begin_drawing(scripts)

    def drawn() -> list[Path]:
        with errors_as(CasstatError, GnuplotError):
            return wait()

    return drawn


def _single_run(views: Views, settings: MergeSettings, drawing: Drawing) -> Step[PlotData]:
    """Return the run or recordings at the paths. Raises CasstatError and click.UsageError."""
    from exporters.charts.merged_plot_data import node_rows, run_of

    warm_up_s = warm_up_of(settings) if drawing.warm_up_s is None else drawing.warm_up_s
    view = View(views, node_rows, points=settings.points)
    yield
    run, operations = view.merged()
    if len(run.indices) > MAX_POINTS:
        span = f"from {min(run.cluster) * run.grid.interval_s:.0f} to {max(run.cluster) * run.grid.interval_s:.0f}"
        hint = "use --from and --until, or a longer --interval"
        raise CasstatError(
            f"{len(run.indices)} points ({span} seconds since the epoch) are too many for a plot (hint: {hint})"
        )
    title = settings.paths[0].resolve().name if len(settings.paths) == 1 else count_text(len(run.nodes), "node")
    return run_of(run, operations, title, warm_up_s)


def warm_up_of(settings: MergeSettings) -> float:
    """Return the duration of a run's warm-up in seconds; 0 unless the plots begin with the beginning of a run.

    Raises CasstatError and click.UsageError.
    """
    run = run_at(settings.paths)
    if run is None or settings.phase is not None or settings.begin is not None:
        return 0.0
    return sum(phase.end_s - phase.begin_s for phase in run.phases if phase.name == WARM_UP)


def _overlaid(settings: MergeSettings) -> PlotData:
    """Return the rows of the runs at the paths, aligned by phase, for overlaid plots.

    Prints a note about each phase that some runs do not have. Raises CasstatError and click.UsageError.
    """
    _check_options(settings)
    by_folder = {folder: _ended_run(folder) for folder in settings.paths}
    runs = list(by_folder.values())
    names = _common_phases(runs, settings.phase)
    length_s = sum(
        max(phase.end_s - phase.begin_s for run in runs for phase in run.phases if phase.name == name) for name in names
    )
    slowest = max(runs, key=_longest_s)
    interval_s = interval_for(settings, _longest_s(slowest), slowest.name, length_s)
    phases, footer = {}, []
    for label, (folder, run) in zip(_labels(by_folder), by_folder.items(), strict=True):
        phases[label], items = _phases(settings, folder, run, names, interval_s)
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


def _ended_run(folder: Path) -> Run:
    """Return the run in a directory; a run without phases is one phase. Raises CasstatError."""
    run = read_run_in(folder)
    if run.end_s is None:
        raise CasstatError(f"{folder}: the run has not ended {recovery_hint(folder)}")
    return replace(run, phases=run.phases or (RunPhase(TOTAL, run.begin_s, run.end_s),))


def _longest_s(run: Run) -> float:
    return max((node.interval_s for node in run.nodes if node.interval_s is not None), default=DEFAULT_S)


def _common_phases(runs: Sequence[Run], wanted: str | None) -> list[str]:
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


def _labels(runs: Mapping[Path, Run]) -> list[str]:
    """Return the labels of runs: their names, else the names of their directories, else the directories' paths."""
    for labels in ([run.name for run in runs.values()], [folder.resolve().name for folder in runs]):
        if len(set(labels)) == len(runs):
            return distinguishing_words(labels)
    return list(map(str, runs))


def distinguishing_words(names: Sequence[str]) -> list[str]:
    """Return distinct names without the words that all of them contain, such as the parameters that runs share.

    Names stay as they are if a name would be empty, or equal to another one.
    """
    words = [name.split() for name in names]
    common = set(words[0]).intersection(*words[1:])
    short = [" ".join(word for word in name if word not in common) for name in words]
    return short if all(short) and len(set(short)) == len(names) else [*names]


def _phases(
    settings: MergeSettings, folder: Path, run: Run, names: Sequence[str], interval_s: float
) -> tuple[list[PhaseRows], list[str]]:
    """Return the rows of these phases of a run, and the items of its footer.

    Raises CasstatError and click.UsageError.
    """
    by_name = {phase.name: phase for phase in run.phases}
    phases = sorted((by_name[name] for name in names), key=lambda phase: phase.begin_s)
    grid = SpanGrid(interval_s, spans=tuple((phase.begin_s, phase.end_s) for phase in phases))
    try:
        views = recording_views(replace(settings, paths=(folder,), phase=None), quiet=True)
        result, operations = View(views, merged_plot_data.node_rows, grid=grid).merged()
    except NoDataError as error:
        raise CasstatError(f"{folder}: {error}") from None
    results = results_in(folder)
    rows = {phase.name: phase for phase in merged_phases(result, operations, grid, phases, results)}
    estimated = ["client times estimated"] if any(client.estimated_clock for client in results) else []
    return [rows[name] for name in names], [*merged_plot_data.footer(result), *estimated]
