"""The program behind the default command: finds the node, reports missing data and prints rows."""

import shlex
from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack, closing
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TypeVar

import click

from cli.errors import CasstatError, errors_as, note
from cli.line import node_selection
from cli.line.line_recorder import EventFile, journal_limits, open_journal, recorded
from cli.line.node_selection import HOST_ONLY, Contact, LineSettings, TransportFactory, first_contact, nodes_here
from cli.line.row_printer import InitialHeader, OutputOptions, print_rows, view_for_sample, view_with_devices
from collector.model.clock import Clock, SystemClock, first_tick_in_s, ticks
from collector.model.metric import Series
from collector.model.snapshot import SourceError
from collector.node.host.cassandra_processes import LocalNode
from collector.node.host.disk import parse as parse_disks
from collector.node.host.kernel_files import read_text
from collector.node.host.network import parse_dev
from collector.node.jolokia.table_budget import OTHERS
from collector.node.log.log_source import LogSource
from collector.node.log.logback import DEFAULT_PATTERN
from collector.node.log.logback import parse as parse_pattern
from collector.node.metrics.tables import is_system_keyspace
from collector.node.node_sampler import NameOverrides, NodeSampler, Source
from collector.node.selection import DEFAULT_TABLES, Selection, Table
from collector.printable import one_line
from collector.recording.writer import folder_name
from exporters.rows.operation_columns import Operations
from exporters.rows.view import View

MAX_NAMES = 20
HINT = "(hint: use --wait if it does not exist yet)"
PORT_HINT = "(hint: use --wait if the node has not started yet)"
MIN_S, MAX_S = 0.1, 86400.0
# How often to look for the process of a node that has not started yet.
PROCESS_INTERVAL_S = 1.0
DISKS, INTERFACES = Path("/proc/diskstats"), Path("/proc/net/dev")
Number = TypeVar("Number", int, float)


def missing_keyspace_message(keyspace: str, table: str, existing: Collection[Table]) -> str:
    """Return the message for a keyspace or table that the node lacks; `existing` contains those that it has."""
    return f"{_missing_name_message(keyspace, table, existing, 'the node', ', which')} {HINT}"


def missing_recorded_message(keyspace: str, table: str, recorded: Collection[Table]) -> str:
    """Return the message for a keyspace or table that the recording lacks; `recorded` contains those that it has."""
    return _missing_name_message(keyspace, table, recorded, "the recording", ": the recording")


def _missing_name_message(keyspace: str, table: str, existing: Collection[Table], owner: str, clause: str) -> str:
    if table and any(fnmatchcase(parent, keyspace) for parent, _ in existing):
        tables = {name for parent, name in existing if name not in ("", OTHERS) and fnmatchcase(parent, keyspace)}
        return f"no table '{table}' in keyspace '{keyspace}'{clause} has {_listed(tables)}"
    keyspaces = {name for name, _ in existing}
    # Cassandra's own keyspaces are listed only if there are no others.
    listed = {name for name in keyspaces if not is_system_keyspace(name)} or keyspaces
    return f"no keyspace '{keyspace}': {owner} has {_listed(listed)}"


def _listed(names: Collection[str]) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - MAX_NAMES} more" if len(ordered) > MAX_NAMES else ""
    return one_line(", ".join(ordered[:MAX_NAMES]) or "none") + more


def missing_port_message(port: int, local_nodes: Sequence[LocalNode]) -> str:
    """Return the message for a JMX port that no Cassandra process on this machine uses.

    Returns "" if a process uses the port, if there are no Cassandra processes, or if any of their ports is unknown.
    """
    ports = [node.jmx_port for node in local_nodes]
    if not ports or port in ports or None in ports:
        return ""
    named = ", ".join(f"{node.jmx_port} (process {node.pid})" for node in local_nodes)
    return f"JMX port {port}: not used by any Cassandra process on this machine; in use: {named} {PORT_HINT}"


def run(settings: LineSettings) -> None:
    """Print rows until the row limit is reached, a signal (Ctrl-C or SIGTERM) arrives, or the reader closes the pipe.

    Raises click.UsageError if options are invalid, CasstatError if the node, keyspace or table does not exist or a file
    cannot be written, and click.exceptions.Exit if Cassandra never answered.
    """
    interval_s = _checked_interval_s(settings)
    row_limit = _single_value("count", settings.count, settings.count_option)
    clock = SystemClock()
    with ExitStack() as stack:
        log = log_source(settings, clock)
        if log is not None:
            stack.enter_context(closing(log))
        events = stack.enter_context(closing(EventFile(settings.events, note))) if settings.events else None
        output = OutputOptions(settings.output, row_limit, header=not settings.no_header, events=events)
        try:
            view, sampler, selection = _contact_node(settings, clock, [] if log is None else [log])
        except KeyboardInterrupt:
            note("nothing measured yet: the node has not answered")
            raise
        stack.enter_context(closing(sampler))
        # Recordings of several nodes need identical tick times so that they can be merged without interpolation.
        aligned = settings.write is not None
        snapshots = sampler.snapshots(ticks(clock, interval_s, aligned=aligned), interval_s)
        if settings.write is not None:
            folder = settings.write / folder_name(sampler.node)
            limits = journal_limits(settings.journal_limit, settings.journal_sync)
            journal = stack.enter_context(closing(open_journal(sampler, folder, limits, selection, interval_s, note)))
            snapshots = recorded(snapshots, journal)
        header = InitialHeader(
            view_with_devices(view, sampler.devices), first_tick_in_s(clock, interval_s, aligned=aligned) + interval_s
        )
        samples = sampler.sample_stream().samples(snapshots)
        print_rows(samples, lambda sample: view_for_sample(view, sampler.devices, sample), interval_s, output, header)
        if not sampler.answered:
            # Only the host was sampled; the exit code lets scripts detect this.
            raise click.exceptions.Exit(1)


def _checked_interval_s(settings: LineSettings) -> float:
    """Return the interval. Raises click.UsageError if the interval, --table or --tables is invalid."""
    if settings.table and not settings.keyspace:
        raise click.UsageError("--table needs --keyspace")
    if settings.tables and settings.output == "csv":
        raise click.UsageError("--tables is not available as CSV (hint: use --format json)")
    given_s = _single_value("interval", settings.interval, settings.interval_option)
    interval_s = node_selection.DEFAULT_S if given_s is None else given_s
    if not MIN_S <= interval_s <= MAX_S:
        raise click.UsageError(f"interval of {interval_s:g} s: must be between {MIN_S} s and {MAX_S:g} s")
    return interval_s


def log_source(settings: LineSettings, clock: Clock) -> LogSource | None:
    """Return the source that reads the node's log, or None without --log. Raises click.UsageError."""
    if settings.log is None:
        if settings.events or settings.log_pattern:
            raise click.UsageError("--events and --log-pattern require the log (hint: use --log FILE)")
        return None
    with errors_as(partial(click.BadParameter, param_hint="--log-pattern"), ValueError):
        hint = f"run '{shlex.join(['casstat', 'doctor', '-d', str(settings.log)])}'"
        return LogSource(settings.log, parse_pattern(settings.log_pattern or DEFAULT_PATTERN), clock, hint)


def _contact_node(settings: LineSettings, clock: Clock, extra: Sequence[Source]) -> tuple[View, NodeSampler, Selection]:
    """Contact the node before the first tick; return the view, the sampler and the metrics to read.

    With --wait, if the node with the given JMX port has no transport because it has not started, waits for its process.
    Prints notes about missing data. Raises CasstatError if the node, keyspace or table does not exist, and
    click.UsageError if options are invalid or there is no transport to try.
    """
    disks, interfaces = parse_disks(read_text(DISKS), ()), parse_dev(read_text(INTERFACES), ())
    overrides = NameOverrides(
        settings.node,
        _checked_device("disk", settings.disk and settings.disk.removeprefix("/dev/"), disks),
        _checked_device("interface", settings.net_interface, interfaces),
    )
    views: dict[str, tuple[View, Selection]] = {}

    def make_sampler(kind: str, factory: TransportFactory) -> NodeSampler:
        view = view_of(settings, kind)
        selection = _selection(settings, view)
        views[kind] = view, selection
        return NodeSampler(factory(selection, clock), selection, overrides, clock, extra=extra)

    is_waiting = False
    while True:
        try:
            # Notes about other processes are printed only once.
            report = (lambda _: None) if is_waiting else note
            contact = first_contact(node_selection.transport_factories(settings, report), make_sampler)
            break
        except node_selection.NoTransportError:
            message = _missing_port_message(settings)
            if not message:
                raise
            if not settings.wait:
                raise CasstatError(message) from None
        # The transports to the node are detected from its process, so they are unknown until it starts.
        if not is_waiting:
            note(f"waiting for a Cassandra process with JMX port {settings.jmx_port}")
            is_waiting = True
        clock.sleep(PROCESS_INTERVAL_S)
    view, selection = views[contact.kind]
    if not settings.wait and (message := _missing_message(settings, contact, view.operations)):
        contact.sampler.close()
        raise CasstatError(message)
    if contact.kind == HOST_ONLY:
        return view, contact.sampler, selection
    if contact.answered:
        _report_missing_data(contact.sampler, view, contact.failures[0] if contact.failures else "")
    else:
        reasons = "; ".join(contact.failures)
        more = _default_interface(settings, contact.sampler)
        note(f"no answer from Cassandra; its columns show '-'{more}: {reasons} (hint: run 'casstat doctor')")
    return view, contact.sampler, selection


def _missing_message(settings: LineSettings, contact: Contact, operations: Operations) -> str:
    """Return the message for a node, keyspace or table that does not exist; "" if none is known to be missing."""
    if not contact.answered:
        return _missing_port_message(settings)
    # A node that is starting may not know its keyspaces yet.
    is_starting = contact.kind == "jolokia" and not contact.sampler.facts.address
    if not operations.keyspace or contact.sampler.provides(operations.count) or is_starting:
        return ""
    try:
        tables = contact.sampler.tables()
    except SourceError:
        return ""
    return missing_keyspace_message(operations.keyspace, operations.table, tables) if tables else ""


def _missing_port_message(settings: LineSettings) -> str:
    """Return the message for a JMX port that is not in use; "" if no port is given, or if it may be in use."""
    return missing_port_message(settings.jmx_port, nodes_here(settings).nodes) if settings.jmx_port is not None else ""


def _selection(settings: LineSettings, view: View) -> Selection:
    """Return the metrics to read: those that the columns need, or all metrics for a recording."""
    shown_tables = settings.tables or 0
    if settings.write is not None:
        return Selection(None, settings.keyspace, settings.table, max(shown_tables, DEFAULT_TABLES))
    metrics = view.metrics(view.text_columns if settings.output == "text" else view.columns)
    return Selection(metrics, settings.keyspace, settings.table, shown_tables)


def view_of(settings: LineSettings, kind: str) -> View:
    """Return the view for a node that is read over this kind of transport. Raises click.UsageError."""
    if settings.columns and (settings.wide or settings.percentiles or settings.caches or settings.read_repair):
        raise click.UsageError(
            "--columns cannot be combined with --wide, --percentiles, --caches or --read-repair (hint: omit them)"
        )
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
        # nodetool does not provide interval percentiles.
        decayed=kind == "nodetool",
    )


def _report_missing_data(sampler: NodeSampler, view: View, jolokia_failure: str) -> None:
    operations = view.operations
    if sampler.kind == "nodetool":
        limits = "percentiles marked ~ decay over minutes"
        if not operations.keyspace:
            limits = f"reads and writes are local operations in all user keyspaces, and {limits}"
        reason = f" ({jolokia_failure})" if jolokia_failure else ""
        note(f"reading through nodetool every few seconds; '-' until its second report; {limits}{reason}")
    if sampler.host is None:
        note("the node runs on another machine: columns for CPU, disk and network show '-'")
    if operations.keyspace and not sampler.provides(operations.count):
        name = ".".join(part for part in (operations.keyspace, operations.table) if part)
        note(f"the node has no {name} yet; its columns show '-'")


def _default_interface(settings: LineSettings, sampler: NodeSampler) -> str:
    """Return that the interface of the default route is shown; "" if the node's address is known, or there is none."""
    interface = sampler.devices[1]
    is_certain = settings.net_interface or sampler.facts.address or not interface
    return "" if is_certain else f", and the network columns {interface}, which has the default route"


def _single_value(name: str, positional: Number | None, option: Number | None) -> Number | None:
    if positional is not None and option is not None and positional != option:
        raise click.UsageError(f"two different values for the {name}: {positional} and {option}")
    return option if positional is None else positional


def _checked_device(kind: str, name: str | None, known: Iterable[Series]) -> str:
    """Return `name`, or "" if it is None. Raises click.UsageError if none of the known series is the device's."""
    available = list(dict.fromkeys(series[1] for series in known))
    if name and name not in available:
        raise click.UsageError(f"no {kind} '{name}' on this machine (available: {', '.join(available) or 'none'})")
    return name or ""
