"""Merge the recordings of many nodes into tables: every node and the cluster, on one grid of times."""

from pathlib import Path
from typing import Any

import click

from cli.parameters.read_limit_options import limited
from cli.recordings.merge_program import merge_options
from cli.safe_echo import echo


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@merge_options
@click.option(
    "-o", "--output", "folder", type=click.Path(path_type=Path), required=True, help="The folder to write into."
)
@click.option("--series", is_flag=True, help="Write all recorded values too, as Parquet.")
@limited
def command(folder: Path, series: bool, **options: Any) -> None:
    """Merge the recordings of many nodes into tables: every node and the cluster, on one grid of times.

    PATHS are what `casstat -w DIR` has written on each node: folders or files. In the cluster's rows counts and
    amounts are sums over the nodes, ratios and percentages are means, and percentiles come from the buckets of all
    nodes. A missing node has no row, and the cluster's row tells how many nodes it is made of.
    """
    from cli.recordings.merge_program import MergeSettings, merge_into, write_series

    settings = MergeSettings(**options)
    for path in merge_into(settings, folder):
        echo(path)
    if series:
        for path in write_series(settings, folder):
            echo(path)
