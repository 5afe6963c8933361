"""Plot recordings with gnuplot

PATHS are directories or files written by `casstat -w DIR` on the nodes, a run directory, or URLs of object storage
(see `casstat upload --help`). The output directory gets self-contained gnuplot scripts with their data, and the
plots as PNG and SVG. Without --interval, a plot has at most 300 points. Several run directories are overlaid: each
phase begins at the same time in all runs.
"""

from pathlib import Path
from typing import Any

import click

from cli.errors import echo
from cli.parameters.parameter_types import Duration
from cli.parameters.recording_options import ObjectUrl, RecordingPath, output_option, read_limits
from cli.recordings.recording_arguments import merge_options

GROUP = "analyse"


def _pixels(text: str) -> tuple[int, int]:
    """Return the width and the height in a text such as 1600x1200. Raises ValueError."""
    width, _, height = text.partition("x")
    if not (width.isdecimal() and height.isdecimal() and 200 <= int(width) <= 8000 and 200 <= int(height) <= 8000):
        raise ValueError(f"'{text}' is not a valid size (hint: use 200x200 to 8000x8000, such as 1600x1200)")
    return int(width), int(height)


def _list(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from exporters.charts.all_plots import OVERLAYS, PLOTS

        for plot in (*PLOTS, *OVERLAYS):
            echo(f"{plot.name:20} {plot.help}")
        context.exit()


@click.command(help=__doc__)
@merge_options
@output_option("Directory or URL of object storage to write to.", RecordingPath(), required=True)
@click.option("--only", default="", metavar="NAMES", help="Plots to draw, comma-separated (--list prints them).  [all]")
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=_list, help="List the plots and exit."
)
@click.option("--theme", type=click.Choice(["light", "dark"]), default="light", help="Colour theme.  [light]")
@click.option(
    "--size", type=_pixels, metavar="WIDTHxHEIGHT", help="Size of each plot in pixels.  [depends on the plot]"
)
@click.option(
    "--warm-up",
    "warm_up_s",
    type=Duration(),
    help="Duration of the warm-up, shaded and excluded from percentiles.  [the run's, or 0s]",
)
@read_limits
def command(
    folder: Path | ObjectUrl,
    only: str,
    theme: str,
    size: tuple[int, int] | None,
    warm_up_s: float | None,
    **options: Any,
) -> None:
    from cli.recordings.object_storage import local_output, local_settings
    from cli.recordings.plot_program import POINTS, Drawing, plot_into
    from cli.recordings.recording_arguments import MergeSettings

    names = [name.strip() for name in only.split(",") if name.strip()]
    with local_settings(MergeSettings(**options, points=POINTS)) as settings, local_output(folder) as output:
        for path in plot_into(settings, output.folder, Drawing(names, theme, size, warm_up_s)):
            echo(output.name(path))
