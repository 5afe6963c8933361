"""All plots.

To add a plot of one run, add a file to `plots/` and an entry to `PLOTS`; to add a plot of several runs, add a file to
`overlay/` and an entry to `OVERLAYS`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from exporters.charts.gnuplot_page import Drawing, Page, data_file, data_file_text, script
from exporters.charts.overlay import overlaid_lines, overlaid_percentiles
from exporters.charts.plot_data import PlotData, missing
from exporters.charts.plot_style import THEMES
from exporters.charts.plots import heatmap, nodes, overview, percentiles, throughput_latency

# Minimum size of a plot, as a fraction of its default size; in a smaller plot, labels would overlap.
_MIN_SCALE = 0.75


@dataclass(frozen=True)
class Plot:
    """One plot: the name of its files, its description, its drawing function, and its default size in pixels."""

    name: str
    help: str
    draw: Callable[[Page], Drawing]
    size: Callable[[PlotData], tuple[int, int]] = lambda _: (1200, 700)


PLOTS: tuple[Plot, ...] = (
    Plot(
        "overview",
        "the cluster's operations, latency, GC, compactions, CPU, disk and network on a common time axis",
        overview.draw,
        overview.size,
    ),
    Plot(
        "nodes",
        "each node's operations and p99 on the same scales, or a band if there are many nodes",
        nodes.draw,
        nodes.size,
    ),
    *(
        Plot(
            f"heatmap_{operation}",
            f"{operation} latency over time: operations per histogram bucket",
            partial(heatmap.draw, operation=operation),
        )
        for operation in ("read", "write")
    ),
    Plot("percentiles", "latency by percentile over the run, without the warm-up", percentiles.draw),
    Plot("throughput_latency", "p95 and p99 against throughput, one point per interval", throughput_latency.draw),
)
"""The plots of one run."""

OVERLAYS: tuple[Plot, ...] = (
    Plot(
        "runs",
        "several runs: operations, p99, CPU and GC, with each phase beginning at the same time",
        overlaid_lines.draw,
        overlaid_lines.size,
    ),
    Plot(
        "runs_percentiles",
        "several runs: latency by percentile in the measured phases",
        overlaid_percentiles.draw,
        overlaid_percentiles.size,
    ),
)
"""The plots of several runs (see `exporters.charts.merged_plot_data`)."""


def write(
    run: PlotData,
    folder: Path,
    *,
    plots: Sequence[Plot] = PLOTS,
    theme: str = "light",
    only: Sequence[str] | None = None,
    size: tuple[int, int] | None = None,
) -> list[Path]:
    """Write the scripts and data files of `plots`, or of those named in `only`; return the scripts.

    `theme` is one of THEMES. `size` is the width and height in pixels; None means each plot's default. No plot is
    smaller than three quarters of its default. Raises OSError, and ValueError for an unknown plot or theme.
    """
    unknown = set(only or ()) - {plot.name for plot in plots}
    if unknown:
        raise ValueError(f"unknown plot '{min(unknown)}'")
    if theme not in THEMES:
        raise ValueError(f"unknown theme '{theme}'")
    folder.mkdir(parents=True, exist_ok=True)
    scripts, missing_nodes = [], missing(run)
    for plot in plots:
        if only is None or plot.name in only:
            page = Page(run, plot.name, *_size(plot, run, size), THEMES[theme], missing_nodes)
            scripts.append(_write(plot, page, folder))
    return scripts


def _size(plot: Plot, run: PlotData, wanted: tuple[int, int] | None) -> tuple[int, int]:
    width, height = plot.size(run)
    if wanted is None:
        return width, height
    return max(wanted[0], round(_MIN_SCALE * width)), max(wanted[1], round(_MIN_SCALE * height))


def _write(plot: Plot, page: Page, folder: Path) -> Path:
    drawing = plot.draw(page)
    for middle, columns in drawing.files.items():
        (folder / data_file(plot.name, middle)).write_text(data_file_text(columns), encoding="utf-8")
    path = folder / f"{plot.name}.gp"
    path.write_text(script(page, plot.help, drawing), encoding="utf-8")
    return path
