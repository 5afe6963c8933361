"""Show a cluster on one screen, live or from a recording

NODE is the address of a node's agent (10.0.0.7, https://10.0.0.7:17199) or the URL of its Jolokia agent;
the default is this machine's node. Press '?' for the keys. If the output is not a terminal, top prints a table for
each tick.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.parameters.access_options import access_options
from cli.parameters.parameter_types import ColumnNames, Duration, format_option, range_options
from cli.parameters.recording_options import read_limit_options

if TYPE_CHECKING:
    from exporters.rows.columns import Column

GROUP = "watch"

FILE = click.Path(path_type=Path)
SETS = ("requests", "latency", "compaction", "jvm", "disk", "network", "tables", "operations")


def _columns() -> "Sequence[Column]":
    from exporters.live.live_columns import COLUMNS

    return COLUMNS


@click.command(help=__doc__)
@click.argument("nodes", nargs=-1, metavar="[NODE]...")
@click.option(
    "--seed", "seeds", multiple=True, metavar="NODE", help="Node to show together with all its peers (repeatable)."
)
@click.option(
    "--file-sd",
    multiple=True,
    type=FILE,
    metavar="FILE",
    help="File with agents in the format of Prometheus' file_sd_configs; read again every 15 s (repeatable).",
)
@click.option(
    "--dns",
    multiple=True,
    metavar="NAME[:PORT]",
    help="Name whose addresses are agents, such as a headless service; resolved again every 15 s (repeatable).",
)
@click.option(
    "-i",
    "--interval",
    type=Duration(0.1, 3600),
    help="Interval between ticks.  [live: 1s; --replay: chosen to give at most 1800 ticks]",
)
@click.option("--replay", type=FILE, metavar="PATH", help="Recording to show instead of live nodes.")
@range_options
@click.option("--phase", metavar="NAME", help="Show only this phase of a run.")
@read_limit_options
@click.option("--once", is_flag=True, help="Print one table and exit.")
@click.option(
    "-n", "--count", type=click.IntRange(min=1), help="Number of tables to print before exiting, one per tick."
)
@format_option("Output format; json prints one object per tick.  [text]")
@click.option(
    "--columns",
    type=ColumnNames(_columns, SETS),
    metavar="SET|NAME,…",
    default=(),
    help="Columns to show, comma-separated ('help' lists them).  [on a screen: the last session's; else requests]",
)
@click.option(
    "--no-mouse", is_flag=True, help="Leave the mouse to the terminal, for example to select text without Shift."
)
@click.option("--ascii", is_flag=True, help="Draw with ASCII characters only.  [if the terminal lacks Unicode]")
@access_options
def command(**options: Any) -> None:
    from cli.top.top_program import TopSettings, run

    run(TopSettings(**options))
