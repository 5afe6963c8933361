"""Draws the plots of recordings, for `casstat plot` and `casstat record`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.errors import CasstatError
from cli.parameters.recording_options import output_folder
from cli.recordings.merge_options import MergeSettings
from cli.recordings.merge_program import merged
from cli.recordings.run_defaults import run_at
from collector.printable import count_text
from collector.runs.run import WARM_UP
from collector.runs.run_file import is_run

if TYPE_CHECKING:
    from exporters.charts.plot_data import PlotData

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


def plot_into(settings: MergeSettings, folder: Path, drawing: Drawing, *, quiet: bool = False) -> Iterator[Path]:
    """Write the plots to a directory; yield the paths of the drawn files.

    Prints notes about the recordings, unless `quiet` is set. Raises CasstatError and click.UsageError.
    """
    from exporters.charts.all_plots import OVERLAYS, PLOTS, write
    from exporters.charts.gnuplot_process import GnuplotError, draw

    is_overlay = len(set(settings.paths)) > 1 and all(map(is_run, settings.paths))
    plots = OVERLAYS if is_overlay else PLOTS
    known = [plot.name for plot in plots]
    for name in drawing.only:
        if name not in known:
            raise click.BadParameter(
                f"unknown plot '{name}' (hint: choose from {', '.join(known)})", param_hint="--only"
            )
    run = _overlay(settings, drawing) if is_overlay else _single_run(settings, drawing, quiet=quiet)
    with output_folder(folder):
        scripts = write(run, folder, plots=plots, theme=drawing.theme, only=drawing.only or None, size=drawing.size)
        try:
            yield from draw(scripts)
        except GnuplotError as error:
            raise CasstatError(str(error)) from None


def _overlay(settings: MergeSettings, drawing: Drawing) -> "PlotData":
    """Return several runs. Raises CasstatError and click.UsageError."""
    from cli.recordings.overlay_program import overlay_of

    if drawing.warm_up_s is not None:
        raise click.UsageError("--warm-up cannot be combined with several runs")
    return overlay_of(settings)


def _single_run(settings: MergeSettings, drawing: Drawing, *, quiet: bool) -> "PlotData":
    """Return the run or recordings at the paths. Raises CasstatError and click.UsageError."""
    from exporters.charts.merged_run import node_rows, run_of

    warm_up_s = warm_up_of(settings) if drawing.warm_up_s is None else drawing.warm_up_s
    run, choice = merged(settings, node_rows, quiet=quiet)
    if len(run.indices) > MAX_POINTS:
        span = f"from {min(run.cluster) * run.grid.interval_s:.0f} to {max(run.cluster) * run.grid.interval_s:.0f}"
        hint = "use --from and --until, or a longer --interval"
        raise CasstatError(
            f"{len(run.indices)} points ({span} seconds since the epoch) are too many for a plot (hint: {hint})"
        )
    title = settings.paths[0].resolve().name if len(settings.paths) == 1 else count_text(len(run.nodes), "node")
    return run_of(run, choice, title, warm_up_s)


def warm_up_of(settings: MergeSettings) -> float:
    """Return the duration of a run's warm-up in seconds; 0 unless the plots begin with the beginning of a run.

    Raises CasstatError and click.UsageError.
    """
    run = run_at(settings.paths)
    if run is None or settings.phase is not None or settings.begin is not None:
        return 0.0
    return sum(phase.end_s - phase.begin_s for phase in run.phases if phase.name == WARM_UP)
