"""Fetches the journals of a time range from agents into a run's directory."""

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import quote

from collector.cluster.live.agent_connection import AgentError
from collector.journal.reader import read_lines
from collector.journal.trimming import TickSpan, trimmed
from collector.journal.writer import SUFFIX, folder_name
from collector.runs import clock_offset
from collector.runs.agent_client import AgentClient, AgentUnavailableError
from collector.runs.run_file import NODES_FOLDER, NodeClock, RunNode

# The names of journal files. A name that an agent returns must not refer to another directory.
FILE_NAME = re.compile(r"\d{8}T\d{6}(-\d{1,10})?" + re.escape(SUFFIX))
MAX_PARALLEL = 16
HINT = "(hint: check the agent's address)"


@dataclass(frozen=True)
class FetchRange:
    """The time range to fetch, on the local clock, in seconds since the epoch."""

    begin_s: float
    end_s: float


def fetched(
    clients: Sequence[AgentClient],
    wanted: FetchRange,
    run: Path,
    progress: Callable[[int], None] = lambda _: None,
) -> list[RunNode]:
    """Fetch the ticks in a time range from all agents in parallel; return the nodes in the same order.

    A node that cannot be fetched has a `problem`; its complete files are kept. Calls `progress` with the number of
    downloaded bytes, from several threads. Raises OSError if the run's directory cannot be written.
    """
    stopping = Event()

    def report(size_bytes: int) -> None:
        if stopping.is_set():
            raise AgentError("interrupted")
        progress(size_bytes)

    with ThreadPoolExecutor(MAX_PARALLEL) as pool:
        try:
            nodes = _with_folders(pool.map(introduced, clients))
            return list(pool.map(lambda client, node: _with_journal(client, node, wanted, run, report), clients, nodes))
        except BaseException:
            # Otherwise, Ctrl-C would only take effect once everything has been downloaded.
            stopping.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def introduced(client: AgentClient) -> RunNode:
    """Return the node behind an agent with its clock's offset, or with a `problem`."""
    try:
        content = client.json("/api/v1/node")
        name, version, interval_s = (content[key] for key in ("node", "casstat", "interval_s"))
        if not all(isinstance(text, str) for text in (name or "", version)) or not isinstance(interval_s, int | float):
            raise TypeError
        clock = clock_offset.measured(lambda: _agent_times(client), time.time, time.monotonic)
    except AgentError as error:
        return RunNode("", client.address.url, problem=str(error))
    except (KeyError, TypeError, ValueError):
        text = f"{client.address.url}: the response does not describe a node {HINT}"
        return RunNode("", client.address.url, problem=text)
    clocks = (NodeClock(clock.at_s, clock.offset_s, clock.error_s),)
    return RunNode(
        name or client.address.host, client.address.url, interval_s=float(interval_s), casstat=version, clocks=clocks
    )


def _agent_times(client: AgentClient) -> tuple[float, float]:
    """Return when the agent received a request and when it answered, on its clock. Raises AgentError and ValueError."""
    content = client.json("/api/v1/time")
    received_s, sent_s = float(content["received_s"]), float(content["sent_s"])
    if not isfinite(received_s) or not isfinite(sent_s):
        raise ValueError
    return received_s, sent_s


def _with_folders(nodes: Iterator[RunNode]) -> list[RunNode]:
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


def _with_journal(
    client: AgentClient, node: RunNode, wanted: FetchRange, run: Path, progress: Callable[[int], None]
) -> RunNode:
    """Fetch a node's journal; return the node with its ticks, or with a `problem`. Raises OSError."""
    if node.problem:
        return node
    span, problems = TickSpan(), []
    # A tick at either end may be in the time range, because the offset has an error.
    (clock,) = node.clocks
    begin_s = wanted.begin_s + clock.offset_s - clock.error_s
    end_s = wanted.end_s + clock.offset_s + clock.error_s
    try:
        for name in _files(client, begin_s, end_s):
            try:
                _fetch_file(client, name, (begin_s, end_s), run / node.folder, span, progress)
            except AgentUnavailableError:
                raise
            except AgentError as error:
                # For example, the journal has just deleted the file to make room.
                problems.append(f"{name}: {error}")
    except AgentError as error:
        problems.append(str(error))
    finally:
        client.close()
        _remove_empty(run / node.folder, run)
    problem = "; ".join(problems)
    if not span.ticks:
        return replace(node, folder="", problem=problem or f"{node.address}: no ticks were recorded in this time range")
    return replace(node, ticks=span.ticks, begin_s=span.begin_s, end_s=span.end_s, problem=problem)


def _files(client: AgentClient, begin_s: float, end_s: float) -> list[str]:
    """Return the names of the journal's files that may have ticks in a time range. Raises AgentError."""
    files: Any = client.json(f"/api/v1/journal?from={begin_s:.6f}&to={end_s:.6f}")
    try:
        names = [file["name"] for file in files]
        if all(FILE_NAME.fullmatch(name) for name in names):
            return names
    except (KeyError, TypeError):
        pass
    raise AgentError(f"{client.address.url}: the response is not a list of journal files {HINT}")


def _fetch_file(
    client: AgentClient,
    name: str,
    range_s: tuple[float, float],
    folder: Path,
    span: TickSpan,
    progress: Callable[[int], None],
) -> None:
    """Download a file and write its ticks in the time range; adds them to `span`. Raises AgentError and OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    download, result = folder / f".{name}.download", folder / f".{name}.new"
    try:
        with download.open("wb") as file:
            client.download(f"/api/v1/journal/{quote(name)}", file, progress)
        parts = trimmed(read_lines(download), *range_s, span)
        first = next(parts, None)
        if first is None:
            return
        with result.open("wb") as file:
            file.write(first)
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        result.replace(folder / name)
    finally:
        download.unlink(missing_ok=True)
        result.unlink(missing_ok=True)


def _remove_empty(folder: Path, root: Path) -> None:
    """Remove a directory and those above it, up to and including `root`, as far as they are empty."""
    with suppress(OSError):
        for path in (folder, *folder.parents):
            with suppress(FileNotFoundError):
                path.rmdir()
            if path == root:
                return
