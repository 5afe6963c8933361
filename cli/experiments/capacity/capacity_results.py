"""Writes the result of a search to its directory: tables and a plot."""

from pathlib import Path
from shlex import join

from cli.errors import CasstatError, note
from cli.experiments.capacity.capacity_folder import SearchState
from collector.file_access import replace_file
from exporters.charts.all_plots import write
from exporters.charts.capacity_plot import capacity_plots
from exporters.charts.gnuplot_process import GnuplotError, draw
from exporters.charts.plot_data import PlotData
from exporters.results.capacity.capacity_output import csv_text, json_text, markdown_text
from exporters.results.capacity.search import SearchResult

PLOTS_FOLDER = "plots"


def write_results(folder: Path, name: str, state: SearchState, result: SearchResult) -> None:
    """Write the tables and the plot; if the plot cannot be drawn, print why. Raises CasstatError."""
    texts = {
        "results.md": markdown_text(result, state.settings.command),
        "results.csv": csv_text(result),
        "results.json": json_text(result, state.settings.command),
    }
    try:
        for file, text in texts.items():
            replace_file(folder / file, text.encode(errors="replace"))
    except OSError as error:
        raise CasstatError(f"{error.filename or folder}: {error.strerror}") from None
    facts = [
        f"load generator: {result.generator}",
        f"command: {join(state.settings.command)}",
        f"objectives: {', '.join(state.objectives)}",
    ]
    try:
        run = PlotData(name, 1.0, (), {}, footer=facts)
        draw(write(run, folder / PLOTS_FOLDER, plots=capacity_plots(result)))
    except GnuplotError as error:
        note(str(error))
    except OSError as error:
        note(f"{error.filename or folder}: {error.strerror}")
