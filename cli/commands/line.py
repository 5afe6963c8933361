"""Print one line per interval: what the node, its disk and its network did in it."""

import re
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from cli.line.line_settings import LineSettings
from cli.main import command_names, short_help
from cli.parameters.column_names import ColumnNames
from cli.parameters.jolokia_options import jolokia_options
from cli.parameters.renamed_options import Renamed
from cli.parameters.size_type import Size
from cli.parameters.time_types import Duration
from collector.journal.format_version import FULL_EVERY

# Cassandra's own rule, and the signs of a pattern; anything else could mean something to JMX that the user did not.
NAME = re.compile(r"[\w*?]+", re.ASCII)
PATH = click.Path(path_type=Path)


class LineCommand(click.Command):
    """The line's command, whose help also lists the others."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands below the options."""
        with formatter.section("Commands (casstat COMMAND --help tells more)"):
            formatter.write_dl([(name, short_help(name)) for name in command_names()])


def name_of(_context: click.Context, parameter: click.Parameter, value: str | None) -> str:
    """Return the name of a keyspace or table, "" for none. Raises click.BadParameter for what cannot be one."""
    if value is not None and not NAME.fullmatch(value):
        raise click.BadParameter(
            f"{value!r} cannot be the name of a {parameter.name}: letters, digits and _, * and ? in patterns"
        )
    return value or ""


@click.command(cls=LineCommand, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("interval", type=Duration(), required=False)
@click.argument("count", type=click.IntRange(min=1), required=False)
@click.option(
    "-i",
    "--interval",
    "interval_option",
    type=Duration(),
    envvar="CASSTAT_INTERVAL",
    help="Time between rows, 0.1s or more.  [1s]",
)
@click.option(
    "-n",
    "--count",
    "count_option",
    type=click.IntRange(min=1),
    envvar="CASSTAT_COUNT",
    help="End after so many rows.",
)
@click.option(
    "-t", "--time", "with_time", is_flag=True, envvar="CASSTAT_TIME", help="Begin each row with the time of day."
)
@click.option("-e", "--epoch", is_flag=True, help="Begin each row with the seconds since the epoch.")
@click.option("-x", "--no-header", is_flag=True, help="Print no header.")
@click.option(
    "-k",
    "--keyspace",
    callback=name_of,
    help="Show this keyspace's local reads and writes, not the node's; * and ? match several.",
)
@click.option("-c", "--table", callback=name_of, help="Show this table's; needs --keyspace.")
@click.option("--wait", is_flag=True, help="Wait for a keyspace, table or node that does not exist yet.")
@click.option(
    "--tables",
    type=click.IntRange(min=1),
    metavar="N",
    help="Add the N busiest tables, one by one, and what the others did together.",
)
@click.option("-j", "--caches", is_flag=True, help="Add hit ratios of key and row cache, and the read stage.")
@click.option("-r", "--read-repair", is_flag=True, help="Add read repairs per second.")
@click.option("-s", "--percentiles", is_flag=True, help="Add the 99th and 95th percentiles of reads and writes.")
@click.option("-p", "--compactions", is_flag=True, help="Add compactions: due, and how far each running one is.")
@click.option("-d", "--log", type=PATH, metavar="FILE", help="Add what Cassandra's log tells: flushes, repairs, GC …")
@click.option("-l", "--events", type=PATH, metavar="FILE", help="Write that to FILE instead of between the rows.")
@click.option("-w", "--write", type=PATH, metavar="DIR", help="Record all there is into DIR, for 'casstat replay'.")
@click.option("--log-pattern", default="", metavar="PATTERN", help="The log's logback pattern.  [Cassandra's own]")
@click.option("--disk", cls=Renamed, former=("-o",), help="The disk to show.  [the one under Cassandra's data]")
@click.option("-f", "--net-interface", help="The network interface to show.  [the one of Cassandra's address]")
@click.option("--wide", is_flag=True, help="Add all there is: pools, caches, GC, memory, pressure …")
@click.option(
    "--columns",
    type=ColumnNames(),
    metavar="NAME,…",
    default=(),
    help="Show these columns instead of the usual ones; 'help' lists them.",
)
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json", "csv"]),
    default="text",
    envvar="CASSTAT_FORMAT",
    help="How to print.  [text]",
)
@click.option("-m", "--jmx-port", type=click.IntRange(1, 65535), help="Choose the node with this JMX port.  [found]")
@click.option(
    "--write-limit",
    type=Size(),
    metavar="SIZE",
    help="Let what is recorded of a node take no more than this: the oldest goes first.  [2G]",
)
@click.option(
    "--write-sync",
    type=click.Choice(["never", "frame", "tick"]),
    default="frame",
    help="When to wait until the disk has it: a crash of the machine (not of casstat) loses what came since."
    f"  [frame: every {FULL_EVERY} ticks]",
)
@click.option(
    "--source",
    type=click.Choice(["auto", "jolokia", "nodetool"]),
    default="auto",
    help="How to ask the node.  [Jolokia where it answers, else nodetool]",
)
@jolokia_options
@click.option("--nodetool", type=PATH, metavar="PATH", help="The nodetool to ask with.  [found]")
@click.option("--jmx-user", default="", help="Who nodetool is to the node.")
@click.option("--jmx-password-file", type=PATH, metavar="FILE", help="nodetool's own: lines of user and password.")
@click.option("--node", default="", help="What to call the node.  [its address]")
@click.version_option(package_name="casstat", message="casstat %(version)s")
def command(**options: Any) -> None:
    """NodeSampler the Cassandra node on this machine: a line every INTERVAL, COUNT times or until Ctrl-C.

    INTERVAL is a duration: 10, 10s and 1m are all understood.

    The first line comes after one full interval; each covers its own interval alone. Latencies are in
    milliseconds. "-" stands for what is not known, or did not happen. At the end, and on Ctrl-C, a line of the
    averages over the whole run.

    Every option can also be set in the environment, as CASSTAT_JOLOKIA for --jolokia.
    """
    context = click.get_current_context()
    for option in ("interval_option", "count_option"):
        if context.get_parameter_source(option) is ParameterSource.ENVIRONMENT and options[option[:-7]] is not None:
            # What stands on the command line goes before the environment.
            options[option] = None
    settings = LineSettings(**options)
    # Only now: help and mistakes need none of what samples.
    from cli.line.line_program import run

    run(settings)
