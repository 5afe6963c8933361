"""Print one line per interval: what the node, its disk and its network did in it."""

import re
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import click

from cli.main import command_names, note, short_help
from cli.output import Output, print_rows
from collector.clock import SystemClock, ticks
from collector.find import DEFAULT_URL, local_nodes
from collector.host import text_of
from collector.jmx import Selection
from collector.jolokia import Jolokia, UrlError
from collector.model import SourceError
from collector.sources.disk import parse as parse_disks
from collector.sources.network import parse_dev
from collector.watch import Given, Watch
from exporters.columns import Operations
from exporters.view import View

SHORTEST_S, LONGEST_S = 0.1, 86400.0
START_TIMEOUT_S = 3.0
DISKS, INTERFACES = Path("/proc/diskstats"), Path("/proc/net/dev")
Number = TypeVar("Number", int, float)
# Cassandra's own rule; anything else could mean something to JMX that the user did not.
NAME = re.compile(r"\w+", re.ASCII)


class LineCommand(click.Command):
    """The line's command, whose help also lists the others."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands below the options."""
        with formatter.section("Commands (casstat COMMAND --help tells more)"):
            formatter.write_dl([(name, short_help(name)) for name in command_names()])


def _name(_context: click.Context, parameter: click.Parameter, value: str | None) -> str:
    if value and not NAME.fullmatch(value):
        raise click.BadParameter(f"'{value}' cannot be the name of a {parameter.name}: letters, digits and _ only")
    return value or ""


@click.command(cls=LineCommand, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("interval", type=float, required=False)
@click.argument("count", type=click.IntRange(min=1), required=False)
@click.option(
    "-i",
    "--interval",
    "interval_option",
    type=float,
    envvar="CASSTAT_INTERVAL",
    help="Seconds between rows, from 0.1 on.  [1]",
)
@click.option(
    "-n",
    "--count",
    "count_option",
    type=click.IntRange(min=1),
    envvar="CASSTAT_COUNT",
    help="End after so many rows.",
)
@click.option("-t", "--time", "with_time", is_flag=True, help="Begin each row with the time of day.")
@click.option("-e", "--epoch", is_flag=True, help="Begin each row with the seconds since the epoch.")
@click.option("-x", "--no-header", is_flag=True, help="Print no header.")
@click.option("-k", "--keyspace", callback=_name, help="Show this keyspace's local reads and writes, not the node's.")
@click.option("-c", "--table", callback=_name, help="Show this table's; needs --keyspace.")
@click.option("-s", "--percentiles", is_flag=True, help="Add the 99th and 95th percentiles of reads and writes.")
@click.option("-p", "--compactions", is_flag=True, help="Add compactions: due, and how far each running one is.")
@click.option("-o", "--disk", help="The disk to show.  [the one under Cassandra's data]")
@click.option("-f", "--net-interface", help="The network interface to show.  [the one of Cassandra's address]")
@click.option("--wide", is_flag=True, help="Add all there is: pools, caches, GC, memory, pressure …")
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json", "csv"]),
    default="text",
    envvar="CASSTAT_FORMAT",
    help="How to print.  [text]",
)
@click.option("--jolokia", metavar="URL", help="Where the node's Jolokia answers.  [found, else 127.0.0.1:8778]")
@click.option("--node", default="", help="What to call the node.  [its address]")
@click.version_option(package_name="casstat", message="casstat %(version)s")
def command(
    interval: float | None,
    count: int | None,
    interval_option: float | None,
    count_option: int | None,
    with_time: bool,
    epoch: bool,
    no_header: bool,
    keyspace: str,
    table: str,
    percentiles: bool,
    compactions: bool,
    disk: str | None,
    net_interface: str | None,
    wide: bool,
    output: str,
    jolokia: str | None,
    node: str,
) -> None:
    """Watch the Cassandra node on this machine: a line every INTERVAL seconds, COUNT times or until Ctrl-C.

    The first line comes after one full interval; each covers its own interval alone. Latencies are in
    milliseconds. "-" stands for what is not known, or did not happen. At the end, and on Ctrl-C, a line of the
    averages over the whole run.

    Every option can also be set in the environment, as CASSTAT_JOLOKIA for --jolokia.
    """
    if table and not keyspace:
        raise click.UsageError("--table needs --keyspace")
    interval_s = _one_of("interval", interval, interval_option) or 1.0
    if not SHORTEST_S <= interval_s <= LONGEST_S:
        raise click.UsageError(f"an interval of {interval_s:g} s: it is a number of seconds, {SHORTEST_S} or more")
    view = View(
        Operations(keyspace, table),
        time="Epoch" if epoch else "Time" if with_time else "",
        percentiles=percentiles,
        compactions=compactions,
        wide=wide,
    )
    wanted = view.metrics(view.text_columns if output == "text" else view.columns)
    clock = SystemClock()
    given = Given(node, _known_disk(disk), _known_interface(net_interface))
    rows = _one_of("count", count, count_option)
    with closing(Watch(_jolokia(jolokia), Selection(wanted, keyspace, table), given, clock)) as watch:
        _first_contact(watch, view.operations)
        print_rows(watch, view, ticks(clock, interval_s), interval_s, Output(output, rows, not no_header))


def _one_of(what: str, positional: Number | None, option: Number | None) -> Number | None:
    if positional is not None and option is not None and positional != option:
        raise click.UsageError(f"two different values for the {what}: {positional} and {option}")
    return option if positional is None else positional


def _jolokia(url: str | None) -> Jolokia:
    if url is None:
        here = local_nodes()
        url = here[0].url if here and here[0].url else DEFAULT_URL
        others = [node.url or f"process {node.pid}, without Jolokia" for node in here[1:]]
        if others:
            note(f"watching {url}; also on this machine: {', '.join(others)} (choose with --jolokia URL)")
    try:
        return Jolokia(url)
    except UrlError as error:
        raise click.BadParameter(str(error), param_hint="--jolokia") from None


def _known_disk(name: str | None) -> str:
    return _known(
        "disk", name and name.removeprefix("/dev/"), [series[1] for series in parse_disks(text_of(DISKS), ())]
    )


def _known_interface(name: str | None) -> str:
    return _known("interface", name, [series[1] for series in parse_dev(text_of(INTERFACES), ())])


def _known(what: str, name: str | None, there: Iterable[str]) -> str:
    known = list(dict.fromkeys(there))
    if name and name not in known:
        raise click.UsageError(f"no {what} '{name}' on this machine; there are {', '.join(known) or 'none'}")
    return name or ""


def _first_contact(watch: Watch, operations: Operations) -> None:
    """Ask the node about itself before the first tick; say in one line what is missing."""
    try:
        watch.learn(START_TIMEOUT_S)
    except SourceError as error:
        mend = "start Jolokia in the node, or give --jolokia URL"
        note(f"no answer from Cassandra, its columns show '-': {error} ({mend})")
        return
    if watch.host is None:
        note("the node runs on another machine: CPU, disk and network of this one are not its own and show '-'")
    if operations.keyspace and not watch.asks_for(operations.metrics[0]):
        where = ".".join(name for name in (operations.keyspace, operations.table) if name)
        note(f"the node has no {where} (yet), its columns show '-'")
