"""Sample the local Cassandra node, one line per interval

A line appears every INTERVAL, COUNT times or until Ctrl-C. INTERVAL is a duration such as 10, 10s or 1m.

The first line appears after one full interval; each line covers its interval only. Latencies are in
milliseconds. "-" means that there is no value: it is unknown, or there were no requests to measure. The last
line contains the averages over the whole run.

Every option can also be set in the environment, for example --jolokia as CASSTAT_JOLOKIA.
"""

import copy
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from cli.command_list import command_names, description_of
from cli.line.node_selection import LineSettings
from cli.parameters.access_options import jolokia_options
from cli.parameters.parameter_types import ColumnNames, Duration, name_of, size
from collector.recording.header import FULL_EVERY

PATH = click.Path(path_type=Path)
JOURNAL_LIMIT = click.option(
    "--journal-limit",
    type=size,
    metavar="SIZE",
    envvar="CASSTAT_JOURNAL_LIMIT",
    help="Maximum size of a node's journal; the oldest files are deleted first.  [2G]",
)
JOURNAL_SYNC = click.option(
    "--journal-sync",
    type=click.Choice(["never", "frame", "tick"]),
    default="frame",
    envvar="CASSTAT_JOURNAL_SYNC",
    help="Fsync the journal after every frame or tick, or never (matters only if the machine crashes)."
    f"  [frame: every {FULL_EVERY} ticks]",
)
EXAMPLES = (
    ("casstat 10", "this node, every 10 s"),
    ("casstat top --seed 10.0.0.7", "the cluster on a screen"),
    ("casstat record --seed 10.0.0.7 -- ./load.sh", "a load test on all nodes"),
)
COMMON = "Common options"
OPTION_GROUPS = {
    COMMON: (
        *("with_time", "percentiles", "keyspace", "table", "tables", "compactions", "log", "write"),
        *("wide", "columns", "output", "jolokia"),
    ),
    "Rows": ("interval_option", "count_option", "epoch", "no_header", "caches", "read_repair", "disk", "net_interface"),
    "Events from the log": ("events", "log_pattern"),
    "Recording": ("journal_limit", "journal_sync"),
    "Node": ("node", "source", "jmx_port", "trusted_user", "wait"),
    "Jolokia": (
        *("jolokia_user", "jolokia_password_file", "jolokia_ca", "jolokia_cert", "jolokia_key"),
        *("jolokia_target", "jolokia_target_user", "jolokia_target_password_file"),
    ),
    "nodetool": ("nodetool", "jmx_user", "jmx_password_file"),
}
"""The options of the default command by subject; those that are not listed print something and exit."""
PRINTING = "Options that print and exit"
COMMAND_GROUPS = ("watch", "record", "analyse", "experiment", "monitor")


def help_page(context: click.Context, *, is_complete: bool = False) -> str:
    """Return the help page: the common options, or all options and what a row means if `is_complete`."""
    formatter = context.make_formatter()
    formatter.write_usage("casstat", "[OPTIONS] [INTERVAL] [COUNT]")
    formatter.write_usage("casstat", "COMMAND [ARGUMENT]...", prefix="       ")
    with formatter.section("Examples"):
        formatter.write_dl(EXAMPLES, col_max=50)
    _write_description(context, formatter, is_complete=is_complete)
    for title, rows in option_rows(context).items():
        if is_complete or title in (COMMON, PRINTING):
            with formatter.section(title):
                formatter.write_dl(rows)
    _write_commands(formatter)
    formatter.write_paragraph()
    rest = "" if is_complete else ", and 'casstat --help-all' lists all options"
    formatter.write_text(f"'casstat help COMMAND' describes a command{rest}.")
    return formatter.getvalue().rstrip("\n")


def option_rows(context: click.Context) -> dict[str, list[tuple[str, str]]]:
    """Return the flags and the help of all options that are not hidden, by subject."""
    titles = {name: title for title, names in OPTION_GROUPS.items() for name in names}
    rows: dict[str, list[tuple[str, str]]] = {title: [] for title in (*OPTION_GROUPS, PRINTING)}
    for parameter in context.command.get_params(context):
        if isinstance(parameter, click.Option) and (record := parameter.get_help_record(context)):
            rows[titles.get(str(parameter.name), PRINTING)].append(record)
    return rows


def _write_description(context: click.Context, formatter: click.HelpFormatter, *, is_complete: bool) -> None:
    paragraphs = (context.command.help or "").strip().split("\n\n")
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text("\n\n".join(paragraphs if is_complete else paragraphs[:2]))


def _write_commands(formatter: click.HelpFormatter) -> None:
    descriptions = {name: description_of(name) for name in command_names()}
    longest = max(map(len, descriptions))
    for group in COMMAND_GROUPS:
        with formatter.section(f"Commands to {group}"):
            rows = [(name.ljust(longest), text) for name, (of, text) in descriptions.items() if of == group]
            formatter.write_dl(rows)


def show_all(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    """Print the help page with all options, and exit."""
    if value and not context.resilient_parsing:
        click.echo(help_page(context, is_complete=True))
        context.exit()


def copied_options(names: Container[str | None], helps: Mapping[str, str] = {}) -> list[click.Option]:
    """Return copies of the default command's options with these names, some with other help texts."""
    options = [copy.copy(option) for option in command.params if isinstance(option, click.Option)]
    options = [option for option in options if option.name in names]
    for option in options:
        option.help = helps.get(option.name or "", option.help)
    return options


class LineCommand(click.Command):
    """The default command: its help also lists all other commands, but not all options."""

    def get_help(self, ctx: click.Context) -> str:
        """Return the help page with the common options."""
        return help_page(ctx)


@click.command(help=__doc__, cls=LineCommand)
@click.argument("interval", type=Duration(), required=False)
@click.argument("count", type=click.IntRange(min=1), required=False)
@click.option(
    "-i",
    "--interval",
    "interval_option",
    type=Duration(),
    envvar="CASSTAT_INTERVAL",
    help="Interval between rows, at least 0.1s.  [1s]",
)
@click.option(
    "-n",
    "--count",
    "count_option",
    type=click.IntRange(min=1),
    envvar="CASSTAT_COUNT",
    help="Number of rows to print before exiting.  [unlimited]",
)
@click.option(
    "-t", "--time", "with_time", is_flag=True, envvar="CASSTAT_TIME", help="Start each row with the local time."
)
@click.option("-e", "--epoch", is_flag=True, help="Start each row with the time in seconds since the epoch.")
@click.option("-x", "--no-header", is_flag=True, help="Omit the header.")
@click.option(
    "-k",
    "--keyspace",
    metavar="NAME",
    callback=name_of,
    help="Show this keyspace's local reads and writes instead of the whole node's (patterns with * and ? allowed).",
)
@click.option(
    "-c",
    "--table",
    metavar="NAME",
    callback=name_of,
    help="Show this table instead of the whole keyspace (requires --keyspace).",
)
@click.option("--wait", is_flag=True, help="Wait for a keyspace, table or node that does not exist yet.")
@click.option(
    "--tables",
    type=click.IntRange(min=1),
    metavar="N",
    help="Add a row for each of the N most active tables, and one for the others, if any.",
)
@click.option(
    "-j", "--caches", is_flag=True, help="Add the hit ratios of the key and row caches, and the read stage's tasks."
)
@click.option("-r", "--read-repair", is_flag=True, help="Add read repairs per second.")
@click.option("-s", "--percentiles", is_flag=True, help="Add the 95th and 99th percentiles of read and write latency.")
@click.option("-p", "--compactions", is_flag=True, help="Add pending compactions and the progress of running ones.")
@click.option(
    "-d", "--log", type=PATH, metavar="FILE", help="Cassandra log to show events from: flushes, repairs, GC, …"
)
@click.option(
    "-l", "--events", type=PATH, metavar="FILE", help="Append events to FILE instead of printing them (requires --log)."
)
@click.option("-w", "--write", type=PATH, metavar="DIR", help="Record all metrics to DIR, for replay, merge and plot.")
@click.option("--log-pattern", default="", metavar="PATTERN", help="Logback pattern of the log.  [Cassandra's default]")
@click.option("-o", "--disk", metavar="NAME", help="Disk to show.  [disk of Cassandra's data directory]")
@click.option(
    "-f",
    "--net-interface",
    metavar="NAME",
    help="Network interface to show.  [interface with Cassandra's address, else the default route's]",
)
@click.option("--wide", is_flag=True, help="Show all columns: thread pools, caches, GC, memory, pressure, …")
@click.option(
    "--columns",
    type=ColumnNames(),
    metavar="NAME,…",
    default=(),
    help="Columns to show instead of the default ones, comma-separated ('help' lists them); applies to every format.",
)
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json", "csv"]),
    default="text",
    envvar="CASSTAT_FORMAT",
    help="Output format.  [text]",
)
@click.option("-m", "--jmx-port", type=click.IntRange(1, 65535), help="JMX port of the node to sample.  [detected]")
@JOURNAL_LIMIT
@JOURNAL_SYNC
@click.option(
    "--source",
    type=click.Choice(["auto", "jolokia", "nodetool", "host"]),
    default="auto",
    help="Source of the node's metrics; host reads only the machine's.  [jolokia if it answers, else nodetool]",
)
@jolokia_options
@click.option("--nodetool", type=PATH, metavar="PATH", help="Path to nodetool.  [detected]")
@click.option("--jmx-user", default="", metavar="NAME", help="JMX user name for nodetool.")
@click.option(
    "--jmx-password-file",
    type=PATH,
    metavar="FILE",
    help="JMX password file for nodetool, one user and password per line.",
)
@click.option("--node", default="", metavar="NAME", help="Name to report for the node.  [its address]")
@click.option(
    "--help-all", is_flag=True, is_eager=True, expose_value=False, callback=show_all, help="Show all options and exit."
)
@click.version_option(package_name="casstat", message="casstat %(version)s")
def command(**options: Any) -> None:
    context = click.get_current_context()
    for option in ("interval_option", "count_option"):
        if context.get_parameter_source(option) is ParameterSource.ENVIRONMENT and options[option[:-7]] is not None:
            # The positional arguments on the command line take precedence over the environment.
            options[option] = None
    settings = LineSettings(**options)
    # Imported late, because --help and usage errors must not load the sampling modules.
    from cli.line.line_program import run

    run(settings)
