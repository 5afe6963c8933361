"""The line at work: find the node, say what is missing, print."""

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import click

from cli.main import note
from cli.output import Output, print_rows
from cli.settings import LineSettings
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

SHORTEST_S, DEFAULT_S, LONGEST_S = 0.1, 1.0, 86400.0
START_TIMEOUT_S = 3.0
DISKS, INTERFACES = Path("/proc/diskstats"), Path("/proc/net/dev")
Number = TypeVar("Number", int, float)


def run(settings: LineSettings) -> None:
    """Print the line as the settings say, until its last row, Ctrl-C or a closed pipe.

    Raises click.UsageError for what cannot be meant.
    """
    if settings.table and not settings.keyspace:
        raise click.UsageError("--table needs --keyspace")
    chosen_s = _one_of("interval", settings.interval, settings.interval_option)
    interval_s = DEFAULT_S if chosen_s is None else chosen_s
    if not SHORTEST_S <= interval_s <= LONGEST_S:
        raise click.UsageError(f"an interval of {interval_s:g} s: it is a number of seconds, {SHORTEST_S} or more")
    view = View(
        Operations(settings.keyspace, settings.table),
        time="Epoch" if settings.epoch else "Time" if settings.with_time else "",
        percentiles=settings.percentiles,
        compactions=settings.compactions,
        wide=settings.wide,
    )
    wanted = view.metrics(view.text_columns if settings.output == "text" else view.columns)
    clock = SystemClock()
    given = Given(settings.node, _known_disk(settings.disk), _known_interface(settings.net_interface))
    rows = _one_of("count", settings.count, settings.count_option)
    output = Output(settings.output, rows, header=not settings.no_header)
    selection = Selection(wanted, settings.keyspace, settings.table)
    with closing(Watch(_jolokia(settings.jolokia), selection, given, clock)) as watch:
        _first_contact(watch, view.operations)
        print_rows(watch, view, ticks(clock, interval_s), interval_s, output)


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
