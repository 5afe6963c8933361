"""Fetches the journals of a time range from agents into a run's directory."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from collector.cluster.live.agent_connection import AgentError
from collector.journal.header import DAY_S
from collector.journal.trimming import Extent, TickSpan, extent_of, look_back_s, trimmed
from collector.journal.validation import MALFORMED
from collector.journal.writer import SUFFIX, folder_name
from collector.printable import count_text, one_line
from collector.runs import clock_offset
from collector.runs.agent_client import AgentClient, AgentUnavailableError, ClientInterruptedError
from collector.runs.clock_offset import ClockOffsetError
from collector.runs.run_file import NODES_FOLDER, NodeClock, RunNode, is_finite, problem_text

MAX_PARALLEL = 16
HINT = "(hint: check the agent's address)"
INTERRUPTED = "interrupted"
# Linux limits file names to this number of bytes.
MAX_NAME_BYTES = 255
MAX_NODE_CHARS, MAX_VERSION_CHARS = 255, 100
MAX_FILES, MAX_FILE_BYTES = 10_000, 1 << 40
MIN_INTERVAL_S, MAX_INTERVAL_S = 1e-3, DAY_S
# The number of problems of a node whose texts are kept.
MAX_PROBLEMS = 10
# How often all clients are interrupted again, because a thread may just have opened a connection.
INTERRUPT_EVERY_S = 0.1


@dataclass(frozen=True)
class FetchRange:
    """The time range to fetch, on the local clock, in seconds since the epoch."""

    begin_s: float
    end_s: float


@dataclass(frozen=True)
class Fetched:
    """The nodes, in the order of their agents; `error`, if set, is what ended the fetch early."""

    nodes: tuple[RunNode, ...]
    error: OSError | KeyboardInterrupt | None = None


@dataclass(frozen=True)
class _File:
    """A file in an agent's journal; `is_written` states whether it is still being written."""

    name: str
    size_bytes: int
    is_written: bool


@dataclass
class _Problems:
    """The number of problems of a node, and the texts of the first ones."""

    count: int = 0
    texts: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Add a problem."""
        self.count += 1
        if len(self.texts) < MAX_PROBLEMS:
            self.texts.append(one_line(text))


def fetched(
    clients: Sequence[AgentClient],
    wanted: FetchRange,
    run: Path,
    progress: Callable[[int], None] = lambda _: None,
    earlier: Sequence[Sequence[NodeClock]] = (),
) -> Fetched:
    """Fetch the ticks in a time range from all agents in parallel, and close the clients.

    `earlier` contains earlier measurements of each client's clock, if there are any: the clock may have been changed.

    A node that cannot be fetched completely has a `problem`; its complete files are kept. On Ctrl-C, or if the run's
    directory cannot be written, the nodes that are not complete yet are interrupted. Calls `progress` with the number
    of downloaded bytes, from several threads.
    """
    created = [folder for folder in (run / NODES_FOLDER, run) if not folder.exists()]
    fetch = _Fetch(clients, wanted, run, progress, dict(zip(clients, earlier, strict=False)))
    nodes = _with_folders(fetch.in_parallel(lambda client, _: introduced(client), map(_unknown, clients)))
    try:
        # Directories are created before the threads start and removed after they have ended.
        for node in nodes:
            if node.folder:
                (run / node.folder).mkdir(parents=True)
    except OSError as error:
        fetch.stop(error)
    nodes = [_settled(node, run) for node in fetch.in_parallel(fetch.with_journal, nodes)]
    for client in clients:
        client.close()
    # If there are no ticks, remove the directories that the fetch created.
    for folder in created:
        with suppress(OSError):
            folder.rmdir()
    return Fetched(tuple(nodes), fetch.error)


class _Fetch:
    """A fetch in progress; its threads share it."""

    def __init__(
        self,
        clients: Sequence[AgentClient],
        wanted: FetchRange,
        run: Path,
        progress: Callable[[int], None],
        earlier: Mapping[AgentClient, Sequence[NodeClock]],
    ) -> None:
        self._clients = clients
        self._wanted = wanted
        self._run = run
        self._progress = progress
        self._earlier = earlier
        self.error: OSError | KeyboardInterrupt | None = None

    def stop(self, error: OSError | KeyboardInterrupt) -> None:
        """End the fetch because of `error`; the first one counts."""
        self.error = self.error or error
        for client in self._clients:
            client.interrupt()

    def in_parallel(self, act: Callable[[AgentClient, RunNode], RunNode], nodes: Iterable[RunNode]) -> list[RunNode]:
        """Return the results of `act` for each client and its node. After `stop`, requests in `act` are interrupted."""
        tasks = list(zip(self._clients, nodes, strict=True))
        futures: list[Future[RunNode]] = []
        with ThreadPoolExecutor(MAX_PARALLEL) as pool:
            while True:
                try:
                    for client, node in tasks[len(futures) :]:
                        futures.append(pool.submit(act, client, node))
                    if not wait(futures, INTERRUPT_EVERY_S).not_done:
                        break
                    if self.error is not None:
                        self.stop(self.error)
                except KeyboardInterrupt as error:
                    self.stop(error)
        return [future.result() for future in futures]

    def with_journal(self, client: AgentClient, node: RunNode) -> RunNode:
        """Fetch a node's journal; return the node with its ticks, or with a `problem`."""
        if node.problem:
            return node
        span, problems = TickSpan(), _Problems()
        damaged = 0
        try:
            for extent in self._extents(client, node, problems):
                span += extent.span
                damaged += extent.damaged
        except AgentError as error:
            problems.add(str(error))
        except ClientInterruptedError:
            problems.add(INTERRUPTED)
        except OSError as error:
            problems.add(f"{error.filename or self._run / node.folder}: {error.strerror}")
            self.stop(error)
        if damaged:
            problems.add(f"{node.address}: {count_text(damaged, 'damaged section')} in its journal")
        if not (span.ticks or problems.count):
            problems.add(f"{node.address}: no ticks were recorded in this time range")
        problem = problem_text(problems.texts, problems.count)
        if not span.ticks:
            return replace(node, problem=problem)
        return replace(node, ticks=span.ticks, begin_s=span.begin_s, end_s=span.end_s, problem=problem)

    def _extents(self, client: AgentClient, node: RunNode, problems: _Problems) -> Iterator[Extent]:
        """Fetch a node's files and yield what has been kept of each.

        Adds the problems of single files to `problems`. Raises AgentError, ClientInterruptedError and OSError.
        """
        # A tick at either end may be in the time range, because the offset has an error.
        clocks = (*self._earlier.get(client, ()), *node.clocks)
        begin_s = self._wanted.begin_s + min(clock.offset_s - clock.error_s for clock in clocks)
        end_s = self._wanted.end_s + max(clock.offset_s + clock.error_s for clock in clocks)
        files = _files(client, begin_s - look_back_s(node.interval_s or 0.0), end_s, problems)
        for file in files:
            try:
                yield _fetch_file(
                    client,
                    file,
                    (begin_s, end_s),
                    self._run / node.folder,
                    self._progress,
                    is_last=file is files[-1],
                )
            except AgentUnavailableError:
                raise
            except AgentError as error:
                # For example, the journal has just deleted the file to make room.
                problems.add(f"{file.name}: {error}")


def introductions(clients: Sequence[AgentClient]) -> list[RunNode]:
    """Return the nodes behind several agents (see `introduced`)."""
    with ThreadPoolExecutor(MAX_PARALLEL) as pool:
        return list(pool.map(introduced, clients))


def last_tick_s(client: AgentClient) -> float | None:
    """Return the time of an agent's last tick, on its clock; None if it is unknown."""
    try:
        tick_s = client.json("/api/v1/node")["tick_s"]
    except (AgentError, ClientInterruptedError, KeyError, TypeError):
        return None
    return float(tick_s) if is_finite(tick_s) else None


def introduced(client: AgentClient) -> RunNode:
    """Return the node behind an agent with its clock's offset, or with a `problem`."""
    url = client.address.url
    try:
        content = client.json("/api/v1/node")
        name, version, interval_s = (content[key] for key in ("node", "casstat", "interval_s"))
        if not _is_text(name or "", MAX_NODE_CHARS) or not _is_text(version, MAX_VERSION_CHARS):
            raise TypeError
        if not is_finite(interval_s) or not MIN_INTERVAL_S <= interval_s <= MAX_INTERVAL_S:
            raise TypeError
        clock = clock_offset.measured(lambda: _agent_times(client), time.time, time.monotonic)
    except AgentError as error:
        return RunNode("", url, problem=one_line(error))
    except ClientInterruptedError:
        return RunNode("", url, problem=INTERRUPTED)
    except ClockOffsetError as error:
        return RunNode("", url, problem=one_line(f"{url}: {error}"))
    except (KeyError, TypeError):
        return RunNode("", url, problem=one_line(f"{url}: the response does not describe a node {HINT}"))
    clocks = (NodeClock(clock.at_s, clock.offset_s, clock.error_s),)
    return RunNode(name or client.address.host, url, interval_s=float(interval_s), casstat=version, clocks=clocks)


def _unknown(client: AgentClient) -> RunNode:
    return RunNode("", client.address.url)


def _is_text(value: Any, max_chars: int) -> bool:
    return isinstance(value, str) and len(value) <= max_chars


def _agent_times(client: AgentClient) -> tuple[float, float]:
    """Return when the agent received a request and when it answered, on its clock.

    Raises AgentError, ClientInterruptedError, KeyError and TypeError.
    """
    content = client.json("/api/v1/time")
    received_s, sent_s = content["received_s"], content["sent_s"]
    if not is_finite(received_s) or not is_finite(sent_s):
        raise TypeError
    return float(received_s), float(sent_s)


def _with_folders(nodes: Iterable[RunNode]) -> list[RunNode]:
    """Return the nodes with a directory each; nodes with the same name have different directories."""
    folders: set[str] = set()
    placed = []
    for node in nodes:
        if not node.problem:
            names = (folder_name(node.name) + suffix for suffix in ("", *(f"~{number}" for number in range(2, 10_000))))
            folder = next(name for name in names if name not in folders)
            folders.add(folder)
            node = replace(node, folder=f"{NODES_FOLDER}/{folder}")
        placed.append(node)
    return placed


def _settled(node: RunNode, run: Path) -> RunNode:
    """Return the node; if it has no ticks in the time range, remove its directory, which may have earlier ticks."""
    if node.ticks or not node.folder:
        return node
    with suppress(OSError):
        for path in (run / node.folder).iterdir():
            path.unlink()
        (run / node.folder).rmdir()
    return replace(node, folder="")


def _files(client: AgentClient, begin_s: float, end_s: float, problems: _Problems) -> list[_File]:
    """Return the journal's files that may have ticks in a time range.

    Adds a problem for each file whose name could refer to another directory. Raises AgentError and
    ClientInterruptedError.
    """
    entries: Any = client.json(f"/api/v1/journal?from={begin_s:.6f}&to={end_s:.6f}")
    url = client.address.url
    if not isinstance(entries, list) or not all(map(_is_file, entries)):
        raise AgentError(f"{url}: the response is not a list of journal files {HINT}")
    if len(entries) > MAX_FILES:
        raise AgentError(f"{url}: more than {MAX_FILES} files in the time range (hint: choose a shorter one)")
    files: dict[str, _File] = {}
    for entry in entries:
        name = entry["name"]
        if _is_file_name(name):
            files.setdefault(name, _File(name, entry["size_bytes"], entry.get("written") is True))
        else:
            problems.add(f"{url}: '{name[:MAX_NAME_BYTES]}' is not the name of a journal file")
    return list(files.values())


def _is_file(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return False
    size_bytes = entry.get("size_bytes")
    return type(size_bytes) is int and 0 <= size_bytes <= MAX_FILE_BYTES


def _is_file_name(name: str) -> bool:
    """Return whether a name that an agent returned is that of a file in its journal; users may have renamed it."""
    if not name.endswith(SUFFIX) or name.startswith(".") or "/" in name or not name.isprintable():
        return False
    return len(name.encode()) <= MAX_NAME_BYTES


def _fetch_file(
    client: AgentClient,
    file: _File,
    range_s: tuple[float, float],
    folder: Path,
    progress: Callable[[int], None],
    *,
    is_last: bool,
) -> Extent:
    """Download a file, and write what is to be kept of it for a time range; `is_last` is as in `Extent`.

    Raises AgentError, ClientInterruptedError and OSError.
    """
    download, result = folder / ".download", folder / ".new"
    try:
        with download.open("wb") as whole:
            client.download(f"/api/v1/journal/{quote(file.name)}", file.size_bytes, whole, progress)
        try:
            extent = extent_of(download, *range_s, growing=file.is_written, is_last=is_last, check=client.check)
            if extent.first is not None:
                with result.open("wb") as part:
                    part.writelines(trimmed(download, extent, client.check))
                    part.flush()
                    os.fsync(part.fileno())
                result.replace(folder / file.name)
        except (*MALFORMED, RecursionError) as error:
            raise AgentError(f"{client.address.url}: malformed record: {one_line(error)}") from None
        return extent
    finally:
        download.unlink(missing_ok=True)
        result.unlink(missing_ok=True)
