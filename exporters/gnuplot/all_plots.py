"""All pictures. To add one, add a file in `pictures/` and a row here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from exporters.gnuplot import data_files
from exporters.gnuplot.missing_nodes import missing
from exporters.gnuplot.plot_colours import THEMES
from exporters.gnuplot.plot_data import Run
from exporters.gnuplot.plot_page import Drawing, Page
from exporters.gnuplot.plots import heatmap, nodes, overview, percentiles, throughput_latency
from exporters.gnuplot.script_template import data_file, script

# Of a picture's own size; smaller its words would lie over one another.
_LEAST = 0.75


@dataclass(frozen=True)
class Picture:
    """One picture: what its files are called, what it shows, how it is made, and its size when nobody gives one."""

    name: str
    help: str
    draw: Callable[[Page], Drawing]
    size: Callable[[Run], tuple[int, int]]


PICTURES: tuple[Picture, ...] = (
    Picture(
        "overview",
        "operations, latency, GC and compactions, CPU, disk and network of the cluster on one axis of time",
        overview.draw,
        overview.size,
    ),
    Picture("nodes", "operations and p99 of each node on the same scales; of many, a band", nodes.draw, nodes.size),
    Picture("heatmap_read", "how long reads took over time: the buckets' counts", heatmap.of("read"), heatmap.size),
    Picture("heatmap_write", "how long writes took over time: the buckets' counts", heatmap.of("write"), heatmap.size),
    Picture(
        "percentiles",
        "latency by percentile in the whole run without its warm-up",
        percentiles.draw,
        percentiles.size,
    ),
    Picture(
        "throughput_latency",
        "p95 and p99 against the throughput, a point for each interval",
        throughput_latency.draw,
        throughput_latency.size,
    ),
)


def write(
    run: Run,
    folder: Path,
    *,
    theme: str = "light",
    only: Sequence[str] | None = None,
    size: tuple[int, int] | None = None,
) -> list[Path]:
    """Write the scripts and data files of all pictures, or of those named in `only`, and return the scripts.

    `theme` is one of THEMES. `size` is width and height in pixels, for every picture; None: each has its own, and none
    becomes smaller than three quarters of that. Raises ValueError for a name of no picture or theme, and OSError.
    """
    unknown = set(only or ()) - {picture.name for picture in PICTURES}
    if unknown:
        raise ValueError(f"no picture is called {min(unknown)}")
    if theme not in THEMES:
        raise ValueError(f"no theme is called {theme}")
    folder.mkdir(parents=True, exist_ok=True)
    found, lacking = [], missing(run)
    for picture in PICTURES:
        if only is None or picture.name in only:
            page = Page(run, picture.name, *_size(picture, run, size), THEMES[theme], lacking)
            found.append(_write(picture, page, folder))
    return found


def _size(picture: Picture, run: Run, wanted: tuple[int, int] | None) -> tuple[int, int]:
    width, height = picture.size(run)
    if wanted is None:
        return width, height
    return max(wanted[0], round(_LEAST * width)), max(wanted[1], round(_LEAST * height))


def _write(picture: Picture, page: Page, folder: Path) -> Path:
    drawing = picture.draw(page)
    for middle, columns in drawing.files.items():
        (folder / data_file(picture.name, middle)).write_text(data_files.text(columns), encoding="utf-8")
    path = folder / f"{picture.name}.gp"
    path.write_text(script(page, picture.help, drawing), encoding="utf-8")
    return path
