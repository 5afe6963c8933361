"""The line at work: find the node, say what is missing, print."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TypeVar

import click

from cli.errors import CasstatError, note
from cli.line.event_file import EventFile
from cli.line.line_settings import DEFAULT_S, LineSettings
from cli.line.missing_names import keyspace_text, port_text
from cli.line.row_printer import Beginning, RowPrinter, print_rows, shown, with_devices
from cli.node.transports import Contact, Way, contact, ways
from collector.host.cassandra_processes import local_nodes
from collector.host.disk import parse as parse_disks
from collector.host.kernel_files import read_text
from collector.host.network import parse_dev
from collector.log.log_source import LogSource
from collector.log.logback import DEFAULT_PATTERN
from collector.log.logback import parse as parse_pattern
from collector.model.clock import Clock, SystemClock, first_tick_in_s, ticks
from collector.model.snapshot import SourceError
from collector.sampling.node_sampler import NameOverrides, NodeSampler
from collector.sampling.selection import DEFAULT_TABLES, Selection
from collector.sampling.source_reader import Source
from exporters.line.operation_columns import Operations
from exporters.line.view import View

SHORTEST_S, LONGEST_S = 0.1, 86400.0
DISKS, INTERFACES = Path("/proc/diskstats"), Path("/proc/net/dev")
Number = TypeVar("Number", int, float)


def run(settings: LineSettings) -> None:
    """Print the line as the settings say, until its last row, Ctrl-C or a closed pipe.

    Raises click.UsageError for what cannot be meant.
    """
    if settings.table and not settings.keyspace:
        raise click.UsageError("--table needs --keyspace")
    if settings.tables and settings.output == "csv":
        raise click.UsageError("--tables has no place in CSV's columns: use --format json")
    chosen_s = _one_of("interval", settings.interval, settings.interval_option)
    interval_s = DEFAULT_S if chosen_s is None else chosen_s
    if not SHORTEST_S <= interval_s <= LONGEST_S:
        raise click.UsageError(f"an interval of {interval_s:g} s: it is a number of seconds, {SHORTEST_S} or more")
    rows = _one_of("count", settings.count, settings.count_option)
    clock = SystemClock()
    with ExitStack() as stack:
        events = stack.enter_context(closing(EventFile(settings.events, note))) if settings.events else None
        output = RowPrinter(settings.output, rows, header=not settings.no_header, events=events)
        log = log_source(settings, clock)
        if log is not None:
            stack.enter_context(closing(log))
        try:
            view, watch, selection = _first_contact(settings, clock, [] if log is None else [log])
        except KeyboardInterrupt:
            note("nothing measured yet: the node has not answered")
            raise
        stack.enter_context(closing(watch))
        # Recordings of several nodes line up.
        aligned = settings.write is not None
        snapshots = watch.snapshots(ticks(clock, interval_s, aligned=aligned), interval_s)
        if settings.write is not None:
            # Only where it is wanted: the compressor is no small thing to load.
            from cli.line.line_recorder import folder_name, limits_of, open_journal, recorded

            folder = settings.write / folder_name(watch.node)
            limits = limits_of(settings.journal_limit, settings.journal_sync)
            journal = stack.enter_context(closing(open_journal(watch, folder, limits, selection, interval_s, note)))
            snapshots = recorded(snapshots, journal)
        beginning = Beginning(
            with_devices(view, watch.devices),
            first_tick_in_s(clock, interval_s, aligned=aligned) + interval_s,
        )
        samples = watch.sample_stream().samples(snapshots)
        print_rows(samples, lambda sample: shown(view, watch.devices, sample), interval_s, output, beginning)
        if not watch.answered:
            # The machine was watched; a script must see that Cassandra was not.
            raise click.exceptions.Exit(1)


def log_source(settings: LineSettings, clock: Clock) -> LogSource | None:
    """Return the node's log as a source, None when none is wanted. Raises click.UsageError."""
    if settings.log is None:
        if settings.events or settings.log_pattern:
            raise click.UsageError("--events and --log-pattern need the log: give -d FILE")
        return None
    try:
        return LogSource(settings.log, parse_pattern(settings.log_pattern or DEFAULT_PATTERN), clock)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--log-pattern") from None


def _first_contact(
    settings: LineSettings, clock: Clock, extra: Sequence[Source]
) -> tuple[View, NodeSampler, Selection]:
    """Return what to show of the node, how to watch it, and what is read: the first way that answers, else the first.

    The node is asked about itself before the first tick; what is missing is said in one line.
    """
    overrides = NameOverrides(settings.node, _known_disk(settings.disk), _known_interface(settings.net_interface))
    shows: dict[str, tuple[View, Selection]] = {}

    def watch_of(kind: str, way: Way) -> NodeSampler:
        view = view_of(settings, kind)
        selection = _selection(settings, view)
        shows[kind] = view, selection
        return NodeSampler(way(selection, clock), selection, overrides, clock, extra=extra)

    try:
        made = contact(ways(settings), watch_of)
    except click.UsageError:
        if settings.jmx_port is not None and (wrong := port_text(settings.jmx_port, local_nodes())):
            raise CasstatError(wrong) from None
        raise
    view, selection = shows[made.kind]
    if not settings.wait and (absent := _absent_text(settings, made, view.operations)):
        made.watch.close()
        raise CasstatError(absent)
    if made.answered:
        _say_what_is_missing(made.watch, view, made.failed[0] if made.failed else "")
    else:
        mend = "'casstat doctor' says what mends it"
        note(f"no answer from Cassandra, its columns show '-': {'; '.join(made.failed)} ({mend})")
    return view, made.watch, selection


def _absent_text(settings: LineSettings, made: Contact, operations: Operations) -> str:
    """Return a message about a node, keyspace or table that does not exist; "" where it may appear by itself."""
    if not made.answered:
        return port_text(settings.jmx_port, local_nodes()) if settings.jmx_port is not None else ""
    # A node that is starting may not know its keyspaces yet.
    is_starting = made.kind == "jolokia" and not made.watch.facts.address
    if not operations.keyspace or made.watch.provides(operations.count) or is_starting:
        return ""
    try:
        known = made.watch.tables()
    except SourceError:
        return ""
    return keyspace_text(operations.keyspace, operations.table, known) if known else ""


def _selection(settings: LineSettings, view: View) -> Selection:
    """Return what to read: what is shown, and for a recording all there is."""
    shown_tables = settings.tables or 0
    if settings.write is not None:
        return Selection(None, settings.keyspace, settings.table, max(shown_tables, DEFAULT_TABLES))
    wanted = view.metrics(view.text_columns if settings.output == "text" else view.columns)
    return Selection(wanted, settings.keyspace, settings.table, shown_tables)


def view_of(settings: LineSettings, kind: str) -> View:
    """Return what the settings show of a node that is asked in this way. Raises click.UsageError."""
    if settings.columns and (settings.wide or settings.percentiles or settings.caches or settings.read_repair):
        raise click.UsageError("--columns replaces --wide, --percentiles, --caches and --read-repair: leave them out")
    return View(
        Operations(settings.keyspace, settings.table, local=kind == "nodetool"),
        time="Epoch" if settings.epoch else "Time" if settings.with_time else "",
        percentiles=settings.percentiles,
        compactions=settings.compactions,
        caches=settings.caches,
        read_repair=settings.read_repair,
        tables=settings.tables is not None,
        wide=settings.wide,
        picked=settings.columns,
        source=kind,
        # nodetool has no percentiles of the interval.
        decayed=kind == "nodetool",
    )


def _say_what_is_missing(watch: NodeSampler, view: View, passed: str) -> None:
    operations = view.operations
    if watch.kind == "nodetool":
        what = "percentiles marked ~ decay over minutes"
        if not operations.keyspace:
            what = f"reads and writes are the local ones of all keyspaces but Cassandra's own, {what}"
        reason = f" ({passed})" if passed else ""
        note(f"asking through nodetool, every few seconds: {what}{reason}")
    if watch.host is None:
        note("the node runs on another machine: CPU, disk and network of this one are not its own and show '-'")
    if operations.keyspace and not watch.provides(operations.count):
        where = ".".join(name for name in (operations.keyspace, operations.table) if name)
        note(f"the node has no {where} (yet), its columns show '-'")


def _one_of(what: str, positional: Number | None, option: Number | None) -> Number | None:
    if positional is not None and option is not None and positional != option:
        raise click.UsageError(f"two different values for the {what}: {positional} and {option}")
    return option if positional is None else positional


def _known_disk(name: str | None) -> str:
    return _known(
        "disk", name and name.removeprefix("/dev/"), [series[1] for series in parse_disks(read_text(DISKS), ())]
    )


def _known_interface(name: str | None) -> str:
    return _known("interface", name, [series[1] for series in parse_dev(read_text(INTERFACES), ())])


def _known(what: str, name: str | None, there: Iterable[str]) -> str:
    known = list(dict.fromkeys(there))
    if name and name not in known:
        raise click.UsageError(f"no {what} '{name}' on this machine; there are {', '.join(known) or 'none'}")
    return name or ""
