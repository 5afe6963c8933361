"""Fetches the journals of a time range from agents into a run's directory, and cuts them to the range."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain, count
from operator import add
from pathlib import Path
from typing import Any
from urllib.parse import quote

from collector.agents.agent_client import MAX_PARALLEL, AgentClient, AgentUnavailableError, ClientInterruptedError
from collector.agents.agent_connection import AgentError
from collector.agents.agent_nodes import ADDRESS_HINT, INTERRUPTED, node_of_agent
from collector.merge.clock_correction import MIN_STEP_S, corrected_span
from collector.printable import MAX_LINE_CHARS, count_text, one_line
from collector.recording.codec import MALFORMED
from collector.recording.header import TooManySeriesError, look_back_s
from collector.recording.trimming import Extent, TickSpan, extent_of, trimmed
from collector.recording.writer import SUFFIX, files_of, folder_name
from collector.runs.run import NodeClock, Run, RunNode
from collector.runs.run_clock import totals_of
from collector.runs.run_file import NODES_FOLDER

# How many of a node's problems are considered for its one line.
MAX_PROBLEMS = 10
# How often a fetch asks whether to stop. All clients are then interrupted each time, because a thread may have opened
# another connection.
ASK_EVERY_S = 0.1
# Linux limits file names to 255 bytes.
MAX_NAME_BYTES = 255
MAX_FILES, MAX_FILE_BYTES = 10_000, 1 << 40


@dataclass
class DeferredInterrupt:
    """Whether a signal has arrived in the block of `interrupt_deferred`."""

    arrived: bool = False


@contextmanager
def interrupt_deferred() -> Iterator[DeferredInterrupt]:
    """In the block, Ctrl-C and the signals that act like it raise nothing; the block asks whether one has arrived.

    An exception in the middle of a call to a thread pool would leave a thread that nobody waits for. Only the main
    thread receives signals; in any other, nothing changes.
    """
    interrupt = DeferredInterrupt()

    def defer(*_: object) -> None:
        interrupt.arrived = True

    is_main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if is_main else ()
    # A signal that is ignored stays ignored, and one without a handler still ends the process.
    before = {number: signal.signal(number, defer) for number in numbers if callable(signal.getsignal(number))}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True)
class FetchRange:
    """The time range to fetch, on the local clock, in seconds since the epoch.

    stepped_s  how far clocks that were set with the local one may have been behind and ahead for a while.
    """

    begin_s: float
    end_s: float
    stepped_s: tuple[float, float] = (0.0, 0.0)

    def shown_s(self, clocks: Sequence[NodeClock]) -> tuple[float, float]:
        """Return the time range on a node's clock, widened by the errors of its measurements."""
        return (
            self.begin_s + min((clock.offset_s - clock.error_s for clock in clocks), default=0.0),
            self.end_s + max((clock.offset_s + clock.error_s for clock in clocks), default=0.0),
        )

    def corrected_span(self, folder: Path, clocks: Sequence[NodeClock]) -> TickSpan | None:
        """Return the ticks of a recording in the time range, as a merge places them, if its node's clock was set.

        Returns None if it was not set, or if the recording does not show when. Raises OSError.
        """
        offsets_s = [clock.offset_s for clock in clocks] or [0.0]
        if max(max(offsets_s) - min(offsets_s), *map(abs, self.stepped_s)) <= MIN_STEP_S:
            return None
        error_s = min((clock.error_s for clock in clocks), default=0.0)
        measured = [(clock.at_s, clock.offset_s) for clock in clocks]
        with suppress(TooManySeriesError):
            return corrected_span(folder, measured, self.begin_s - error_s, self.end_s + error_s)
        return None


def wanted_range(run: Run) -> FetchRange:
    """Return the time range to fetch for a run that has ended."""
    totals_s = totals_of(run.clock_steps)
    assert run.end_s is not None  # noqa: S101 - the caller fetches after the end
    return FetchRange(run.begin_s, run.end_s, (min(totals_s), max(totals_s)))


def ticks_in(files: Iterable[Path], range_s: tuple[float, float]) -> tuple[TickSpan, int]:
    """Return the ticks in a time range, and the number of damaged sections in the files. Raises OSError."""
    span, damaged = TickSpan(), 0
    for file in files:
        extent = extent_of(file, *range_s, growing=True)
        span += extent.span
        damaged += extent.damaged
    return span, damaged


def recorded_ticks(folder: Path, wanted: FetchRange, clocks: Sequence[NodeClock]) -> tuple[TickSpan, int]:
    """Return the ticks of a node's recording in a time range, and the number of damaged sections. Raises OSError."""
    span, damaged = ticks_in(files_of(folder), wanted.shown_s(clocks))
    return wanted.corrected_span(folder, clocks) or span, damaged


@dataclass(frozen=True)
class Fetched:
    """The result of a fetch: the nodes, in the order of their agents, and the error that ended it early, if any."""

    nodes: tuple[RunNode, ...]
    error: OSError | KeyboardInterrupt | None = None


def fetched(
    clients: Sequence[AgentClient],
    wanted: FetchRange,
    run: Path,
    progress: Callable[[int], None] = lambda _: None,
    known: Sequence[RunNode] = (),
    parent: str = NODES_FOLDER,
    wall_s: Callable[[], float] = time.time,
) -> Fetched:
    """Fetch the ticks in a time range from all agents in parallel, and close the clients.

    `known` contains, for each client, what was known about its node before. The result keeps it, except for the
    recording; the agent's clock may have been changed since its earlier measurements.
    Recordings are written to directories in `parent`, a path relative to `run`. `wall_s` is the local clock.

    A node that cannot be fetched completely has a `problem`; its complete files are kept. On Ctrl-C, or if the run's
    directory cannot be written to, fetching stops for the nodes that are not yet complete. Calls `progress` as
    `AgentClient.download` does, but from several threads.
    """
    with interrupt_deferred() as interrupt:
        created = [folder for folder in (run / parent, run) if not folder.exists()]
        earlier = {client: node.clocks for client, node in zip(clients, known, strict=False)}
        fetch = _Fetch(clients, wanted, run, progress, earlier, interrupt)
        unknown = [RunNode("", client.address.url) for client in clients]
        nodes = _with_folders(fetch.in_parallel(lambda client, _: node_of_agent(client, wall_s), unknown), parent)
        try:
            # Directories are created before the downloads start; those of nodes without ticks are removed afterwards.
            for node in nodes:
                if node.folder:
                    (run / node.folder).mkdir(parents=True)
        except OSError as error:
            fetch.stop(error)
        nodes = [_without_empty_folder(node, run) for node in fetch.in_parallel(fetch.with_journal, nodes)]
        for client in clients:
            client.close()
        # If no ticks were fetched, remove the directories that the fetch created; a directory with files remains.
        for folder in created:
            with suppress(OSError):
                folder.rmdir()
        if known:
            nodes = [_with_known(node, before) for node, before in zip(nodes, known, strict=True)]
    return Fetched(tuple(nodes), fetch.error or (KeyboardInterrupt() if interrupt.arrived else None))


def _with_known(node: RunNode, before: RunNode) -> RunNode:
    """Return a fetched node with what was known about it before; a journal is needed only until it has been fetched."""
    return replace(
        node,
        name=node.name or before.name,
        interval_s=node.interval_s or before.interval_s,
        casstat=node.casstat or before.casstat,
        clocks=(*before.clocks, *node.clocks),
        journal=before.journal if node.problem else "",
        spool=before.spool,
    )


@dataclass
class _Fetch:
    """A fetch in progress; its threads share it. `earlier` has what was measured of the nodes' clocks before."""

    clients: Sequence[AgentClient]
    wanted: FetchRange
    run: Path
    progress: Callable[[int], None]
    earlier: Mapping[AgentClient, Sequence[NodeClock]]
    interrupt: DeferredInterrupt
    error: OSError | KeyboardInterrupt | None = None

    def stop(self, error: OSError | KeyboardInterrupt) -> None:
        """End the fetch by interrupting all clients; record `error`, unless an earlier call has recorded one."""
        self.error = self.error or error
        for client in self.clients:
            client.interrupt()

    def in_parallel(self, act: Callable[[AgentClient, RunNode], RunNode], nodes: Iterable[RunNode]) -> list[RunNode]:
        """Call `act` for each client and its node in parallel, and return the results in the same order.

        After `stop`, the requests that `act` sends fail.
        """
        with ThreadPoolExecutor(MAX_PARALLEL) as pool:
            futures = [pool.submit(act, client, node) for client, node in zip(self.clients, nodes, strict=True)]
            while wait(futures, ASK_EVERY_S).not_done:
                if self.error is not None or self.interrupt.arrived:
                    self.stop(self.error or KeyboardInterrupt())
        return [future.result() for future in futures]

    def with_journal(self, client: AgentClient, node: RunNode) -> RunNode:
        """Fetch a node's journal; return the node with the number and time range of its ticks, and any `problem`."""
        if node.problem:
            return node
        span, damaged = TickSpan(), 0
        problems: list[str] = []
        clocks = (*self.earlier.get(client, ()), *node.clocks)
        try:
            try:
                for extent in self._extents(client, node, clocks, problems):
                    span += extent.span
                    damaged += extent.damaged
            except AgentError as error:
                problems.append(str(error))
            except ClientInterruptedError:
                problems.append(INTERRUPTED)
            span = self.wanted.corrected_span(self.run / node.folder, clocks) or span
        except OSError as error:
            problems.append(f"{error.filename or self.run / node.folder}: {error.strerror}")
            self.stop(error)
        if damaged:
            problems.append(f"{node.address}: {count_text(damaged, 'damaged section')} in its journal")
        if not (span.ticks or problems):
            problems.append(f"{node.address}: no ticks were recorded in this time range")
        problem = problem_text([*map(one_line, problems[:MAX_PROBLEMS])], len(problems))
        if not span.ticks:
            return replace(node, problem=problem)
        return replace(node, ticks=span.ticks, begin_s=span.begin_s, end_s=span.end_s, problem=problem)

    def _extents(
        self, client: AgentClient, node: RunNode, clocks: Sequence[NodeClock], problems: list[str]
    ) -> Iterator[Extent]:
        """Fetch a node's files, and yield the extent that was kept of each file, with the ticks in the time range.

        Adds the problems of single files to `problems`. Raises AgentError, ClientInterruptedError and OSError.
        """
        wanted_s = self.wanted.shown_s(clocks)
        begin_s, end_s = map(add, wanted_s, self.wanted.stepped_s)
        files = journal_files(client, begin_s - look_back_s(node.interval_s or 0.0), end_s, problems.append)
        for file in files:
            try:
                folder, is_last = self.run / node.folder, file is files[-1]
                extent = fetch_file(client, file, (begin_s, end_s), folder, self.progress, is_last=is_last)
                if extent.first is not None and (begin_s, end_s) != wanted_s:
                    extent.span, _ = ticks_in([folder / file.name], wanted_s)
                yield extent
            except AgentUnavailableError:
                raise
            except AgentError as error:
                # For example, the journal has just deleted the file to make room.
                problems.append(f"{file.name}: {error}")


def _with_folders(nodes: Iterable[RunNode], parent: str) -> list[RunNode]:
    """Assign each node without a problem its own directory in `parent`; return all nodes."""
    folders: set[str] = set()
    placed = []
    for node in nodes:
        if not node.problem:
            name = folder_name(node.name)
            names = chain([name], (f"{name}~{number}" for number in count(2)))
            folder = next(name for name in names if name not in folders)
            folders.add(folder)
            node = replace(node, folder=f"{parent}/{folder}")
        placed.append(node)
    return placed


def _without_empty_folder(node: RunNode, run: Path) -> RunNode:
    """Return the node; if it has no ticks in the time range, delete its directory, including any earlier ticks."""
    if node.ticks or not node.folder:
        return node
    with suppress(OSError):
        for path in (run / node.folder).iterdir():
            path.unlink()
        (run / node.folder).rmdir()
    return replace(node, folder="")


def problem_text(problems: Sequence[str], count: int) -> str:
    """Return a line of at most 200 characters about `count` problems; `problems` are the first of them.

    Returns "" if there are none.
    """
    for shown in range(len(problems), 0, -1):
        suffix = f" (and {count - shown} more)" if count > shown else ""
        text = one_line("; ".join(problems[:shown]))
        if shown == 1 or len(text) < MAX_LINE_CHARS - len(suffix):
            return text[: MAX_LINE_CHARS - len(suffix)] + suffix
    return ""


@dataclass(frozen=True)
class JournalFile:
    """The part of a file in an agent's journal that may have ticks in a time range.

    path        the URL path of that part.
    size_bytes  the size of the whole file.
    is_growing  whether the agent is still writing to the file.
    """

    name: str
    path: str
    size_bytes: int
    is_growing: bool


def journal_files(
    client: AgentClient, begin_s: float, end_s: float, add_problem: Callable[[str], None]
) -> list[JournalFile]:
    """Return the files of an agent's journal that may have ticks in a time range on the agent's clock.

    Omits each file whose name is not acceptable, for example because it could refer to another directory, and calls
    `add_problem` with the reason. Raises AgentError and ClientInterruptedError.
    """
    range_query = f"?from={begin_s:.6f}&to={end_s:.6f}"
    entries: Any = client.json(f"/api/v1/journal{range_query}")
    url = client.address.url
    if not isinstance(entries, list) or not all(map(_is_file, entries)):
        raise AgentError(f"{url}: the response is not a list of journal files {ADDRESS_HINT}")
    if len(entries) > MAX_FILES:
        raise AgentError(f"{url}: more than {MAX_FILES} files in the time range (hint: choose a shorter one)")
    files: dict[str, JournalFile] = {}
    for entry in entries:
        name = entry["name"]
        if _is_file_name(name):
            # An agent of an earlier version ignores the range, and sends the whole file.
            path = f"/api/v1/journal/{quote(name)}{range_query}"
            files.setdefault(name, JournalFile(name, path, entry["size_bytes"], entry.get("written") is True))
        else:
            add_problem(f"{url}: '{name[:MAX_NAME_BYTES]}' is not the name of a journal file")
    return list(files.values())


def _is_file(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return False
    size_bytes = entry.get("size_bytes")
    return type(size_bytes) is int and 0 <= size_bytes <= MAX_FILE_BYTES


def _is_file_name(name: str) -> bool:
    """Return whether a name is safe to use for a local file; it need not be a recorder's, as users may rename files."""
    if not name.endswith(SUFFIX) or name.startswith(".") or "/" in name or not name.isprintable():
        return False
    return len(name.encode()) <= MAX_NAME_BYTES


def fetch_file(
    client: AgentClient,
    file: JournalFile,
    range_s: tuple[float, float],
    folder: Path,
    progress: Callable[[int], None],
    *,
    is_last: bool,
) -> Extent:
    """Download a file to `folder`, cut it to a time range on the agent's clock, and return the extent that was kept.

    Writes no file if nothing is to be kept. `is_last` is as in `Extent`, and `progress` as in `AgentClient.download`.
    Raises AgentError, ClientInterruptedError and OSError.
    """
    download, result = folder / ".download", folder / ".new"
    try:
        with download.open("wb") as output:
            client.download(file.path, file.size_bytes, output, progress)
        try:
            extent = extent_of(download, *range_s, growing=file.is_growing, is_last=is_last, check=client.check)
            if extent.first is not None:
                with result.open("wb") as output:
                    output.writelines(trimmed(download, extent, client.check))
                    output.flush()
                    os.fsync(output.fileno())
                result.replace(folder / file.name)
        except (*MALFORMED, RecursionError) as error:
            raise AgentError(f"{client.address.url}: malformed record: {one_line(error)}") from None
        return extent
    finally:
        download.unlink(missing_ok=True)
        result.unlink(missing_ok=True)
