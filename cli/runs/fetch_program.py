"""The program behind `casstat fetch`: fetches recordings from agents or object storage into a new run."""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from shutil import rmtree
from threading import Lock

import click

from cli.errors import CasstatError, echo, note
from cli.parameters.access_options import JolokiaSettings
from cli.parameters.parameter_types import TimeOfDay
from cli.recordings.object_storage import open_store, store_errors
from cli.runs.agent_clients import agent_clients
from collector.agents.agent_client import AgentClient
from collector.agents.agent_nodes import INTERRUPTED
from collector.agents.fetching import Fetched, FetchRange, fetched, interrupt_deferred
from collector.merge.recordings import sessions
from collector.printable import count_text, local_time, one_line
from collector.recording.codec import MAX_TIME_S
from collector.recording.object_store import ObjectStore, is_object_url, parts_of
from collector.recording.reader import entries, read
from collector.recording.recording_download import download_recordings
from collector.recording.trimming import TickSpan
from collector.runs.run import NodeClock, Run, RunNode, accepted_name
from collector.runs.run_file import NODES_FOLDER, write_run

SHOWN_EVERY_S = 0.5


@dataclass(frozen=True)
class FetchSettings:
    """The options of `casstat fetch`; see `casstat fetch --help`."""

    nodes: tuple[str, ...]
    folder: Path
    last: float | None = None
    begin: float | TimeOfDay | None = None
    end: float | TimeOfDay | None = None
    name: str | None = None
    agent: JolokiaSettings = field(default_factory=JolokiaSettings)


def fetch(settings: FetchSettings) -> None:
    """Fetch the nodes' recordings into a new run, and print a line for each node.

    Raises click.UsageError, and CasstatError if a node could not be fetched completely. On Ctrl-C, keeps what has been
    fetched and raises KeyboardInterrupt.
    """
    wanted = _range(settings, time.time())
    urls = [node for node in settings.nodes if is_object_url(node)]
    if urls and len(settings.nodes) > 1:
        raise click.UsageError(f"{one_line(urls[0])}: cannot be combined with other nodes")
    clients = [] if urls else _clients(settings)
    folder = settings.folder
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CasstatError(f"{folder}: already exists (hint: choose another directory)")
    stored = _fetch_stored(urls[0], wanted, folder) if urls else None
    with interrupt_deferred() as interrupt:
        with Progress() as progress:
            result = stored or fetched(clients, wanted, folder, progress.add)
        name = settings.name or accepted_name(folder.resolve().name)
        run = Run(name, wanted.begin_s, wanted.end_s, version("casstat"), nodes=result.nodes)
        is_run = any(node.ticks for node in result.nodes)
        error = result.error
        try:
            if is_run:
                write_run(folder, run)
        except OSError as failed:
            error = error or failed
    if interrupt.arrived:
        error = error or KeyboardInterrupt()
    _report_nodes(folder, result.nodes)
    if is_run and (isinstance(error, OSError) or (error and any(node.problem for node in result.nodes))):
        note(f"{folder}: the run is incomplete")
    if isinstance(error, OSError):
        raise CasstatError(f"{error.filename or folder}: {error.strerror}")
    if error is not None:
        raise error
    require_all(result.nodes)


def _range(settings: FetchSettings, now_s: float) -> FetchRange:
    """Return the time range to fetch. Raises click.UsageError."""
    if settings.last is not None and settings.begin is not None:
        raise click.UsageError("specify either --last or --from")
    if settings.last is not None and settings.end is not None:
        raise click.UsageError("--last cannot be combined with --until")
    if settings.last is None and settings.begin is None:
        raise click.UsageError("no period given (hint: use either --last or --from)")
    begin, end = now_s - settings.last if settings.last is not None else settings.begin, settings.end
    begin_s = begin.last_before(now_s) if isinstance(begin, TimeOfDay) else float(begin or 0.0)
    if not 0 <= begin_s <= MAX_TIME_S:
        raise click.UsageError(f"the period must begin between 0 and {MAX_TIME_S:g} seconds since the epoch")
    end_s = end.within(begin_s, now_s) if isinstance(end, TimeOfDay) else now_s if end is None else end
    if end_s < begin_s:
        raise click.UsageError("--until is before --from")
    if end_s > MAX_TIME_S:
        raise click.UsageError(f"the period must end at most {MAX_TIME_S:g} seconds after the epoch")
    return FetchRange(begin_s, end_s)


def _clients(settings: FetchSettings) -> list[AgentClient]:
    """Return a client for each node. Raises click.UsageError."""
    clients = agent_clients(settings.agent)
    addresses = clients.addresses(settings.nodes)
    for address in addresses:
        if not address.is_agent:
            raise click.UsageError(
                f"{one_line(address.url)}: this is a Jolokia agent, which has no recordings"
                " (hint: give the address of a casstat agent)"
            )
    return [clients.client(address) for address in addresses]


def _report_nodes(folder: Path, nodes: Sequence[RunNode]) -> None:
    """Print the problems, a line for each fetched node with times on this host's clock, and the directory."""
    for node in nodes:
        if node.problem and node.problem != INTERRUPTED:
            note(one_line(node.problem))
    for node in nodes:
        if node.begin_s is not None and node.end_s is not None:
            clock = node.clocks[-1] if node.clocks else NodeClock(node.begin_s, 0.0, 0.0)
            times = f"{local_time(node.begin_s - clock.offset_s)} to {local_time(node.end_s - clock.offset_s)}"
            offset = f"clock {clock.offset_s:+.4f} s ± {clock.error_s:.4f} s" if node.clocks else "clock not measured"
            echo(f"{one_line(node.name)}: {count_text(node.ticks, 'tick')}, {times}, {offset}")
    if any(node.ticks for node in nodes):
        echo(folder)


def require_all(nodes: Sequence[RunNode]) -> None:
    """Raise CasstatError if nothing was fetched or a node has a problem."""
    if not any(node.ticks for node in nodes):
        raise CasstatError("nothing fetched")
    failed = sum(bool(node.problem) for node in nodes)
    if failed:
        raise CasstatError(f"{failed} of {count_text(len(nodes), 'node')} not fetched completely")


class Progress:
    """Shows the number of downloaded bytes on a terminal."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._bytes = 0
        self._shown_s = clock()
        self._is_shown = False

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        """Erase the progress display."""
        with self._lock:
            if self._is_shown:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
            self._is_shown = False

    def add(self, size_bytes: int) -> None:
        """Add downloaded bytes; may be called from any thread."""
        with self._lock:
            self._bytes += size_bytes
            if sys.stderr is not None and sys.stderr.isatty() and self._clock() - self._shown_s >= SHOWN_EVERY_S:
                self._shown_s, self._is_shown = self._clock(), True
                sys.stderr.write(f"\r{self._bytes / 1e6:.1f} MB fetched\x1b[K")
                sys.stderr.flush()


def _fetch_stored(url: str, wanted: FetchRange, run: Path) -> Fetched:
    """Fetch the ticks in a time range of all nodes at a URL into `run`, an empty or new directory.

    Nothing is left of a fetch that fails, is interrupted or finds no ticks. Raises CasstatError and KeyboardInterrupt.
    """
    store, folder, is_new = open_store(url), run / NODES_FOLDER, not run.exists()
    nodes: tuple[RunNode, ...] = ()
    try:
        with store_errors():
            parts = parts_of(store.objects())
            if not parts:
                raise CasstatError(f"{store.name}: no recordings found")
            objects = [part.stored for of_file in parts.values() for part in of_file]
            download_recordings(store, objects, folder, wanted.begin_s, wanted.end_s)
            folders = {folder / node: f"{NODES_FOLDER}/{node}".rstrip("/") for node, _ in parts}
            nodes = tuple(_node(store, path, name, wanted) for path, name in folders.items())
    except OSError as error:
        return Fetched((), error)
    finally:
        if not any(node.ticks for node in nodes):
            rmtree(folder, ignore_errors=True)
            if is_new:
                with suppress(OSError):
                    run.rmdir()
    return Fetched(nodes)


def _node(store: ObjectStore, folder: Path, name: str, wanted: FetchRange) -> RunNode:
    """Return the node whose recording is in a directory. Raises OSError."""
    span = TickSpan()
    recorded, _ = sessions([folder])
    for session in recorded:
        for file in session.files:
            for entry in entries(read(file)):
                if wanted.begin_s <= entry.snapshot.tick.time_s <= wanted.end_s:
                    span.add(entry.snapshot.tick.time_s)
    address = f"{store.name}/{folder.name}"
    if not span.ticks:
        return RunNode(folder.name, address, problem=f"{address}: no ticks were recorded in this time range")
    last = max(recorded, key=lambda session: session.end_s)
    return RunNode(
        last.node, address, name, span.ticks, span.begin_s, span.end_s, last.head.interval_s, last.head.writer
    )
