"""Merge recordings of several nodes into tables"""

from pathlib import Path
from typing import Any

import click

from cli.parameters.read_limit_options import read_limits
from cli.recordings.merge_options import merge_options
from cli.safe_echo import echo


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@merge_options
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    required=True,
    help="Directory to write to.",
)
@click.option("--series", is_flag=True, help="Also write every recorded series as Parquet.")
@read_limits
def command(folder: Path, series: bool, **options: Any) -> None:
    """Merge recordings of several nodes into tables

    PATHS are directories or files written by `casstat -w DIR` on the nodes, or a run directory. For each interval of a
    common grid, the tables have a row per node and one for the cluster. In cluster rows, counts and amounts are sums
    over the nodes, ratios and percentages are means, and percentiles come from the merged histograms. A missing node
    has no row; each cluster row contains the number of nodes it covers.
    """
    from cli.recordings.merge_options import MergeSettings
    from cli.recordings.merge_program import merge_into, write_series

    settings = MergeSettings(**options)
    for path in merge_into(settings, folder):
        echo(path)
    if series:
        for path in write_series(settings, folder):
            echo(path)
