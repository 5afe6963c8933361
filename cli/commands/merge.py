"""Merge recordings of several nodes into tables

PATHS are directories or files written by `casstat -w DIR` on the nodes, a run directory, or URLs of object storage
(see `casstat upload --help`). For each interval of a
common grid, the tables have a row per node and one for the cluster. In cluster rows, counts and amounts are sums
over the nodes, ratios and percentages are means, and percentiles come from the merged histograms. A missing node
has no row; each cluster row contains the number of nodes it covers.
"""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from cli.errors import echo
from cli.parameters.recording_options import ObjectUrl, RecordingPath, output_option, read_limits
from cli.recordings.recording_arguments import merge_options

GROUP = "analyse"


@click.command(help=__doc__)
@merge_options
@output_option("Directory or URL of object storage to write to.", RecordingPath(), required=True)
@click.option("--series", is_flag=True, help="Also write every recorded series as Parquet.")
@click.option(
    "--scheduler", metavar="ADDRESS", help="Merge on the cluster of this Dask scheduler, such as tcp://10.0.0.9:8786."
)
@read_limits
def command(folder: Path | ObjectUrl, series: bool, scheduler: str | None, **options: Any) -> None:
    from cli.recordings.merge_cluster import on_cluster
    from cli.recordings.merge_program import merge_into, write_series
    from cli.recordings.object_storage import local_output, local_settings
    from cli.recordings.recording_arguments import MergeSettings

    given = MergeSettings(**options)
    with ExitStack() as stack:
        cluster = None
        if scheduler:
            settings, cluster = stack.enter_context(on_cluster(given, scheduler))
        else:
            settings = stack.enter_context(local_settings(given))
        output = stack.enter_context(local_output(folder))
        for path in merge_into(settings, output.folder, cluster=cluster):
            echo(output.name(path))
        if series:
            for path in write_series(settings, output.folder, cluster):
                echo(output.name(path))
