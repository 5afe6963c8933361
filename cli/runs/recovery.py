"""Completes a run: fetches the nodes that are missing or incomplete, for example because the recorder died."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copytree, rmtree

from cli.errors import CasstatError, note
from cli.parameters.jolokia_options import JolokiaSettings
from cli.recordings.run_defaults import run_at
from cli.runs import run_folder
from cli.runs.agent_clients import AgentClients, agent_clients
from cli.runs.fetch_program import Progress
from cli.runs.finish import finish
from cli.runs.marks_file import MarksReader
from cli.runs.run_nodes import PRIVATE_FOLDER
from collector.cluster.live.node_address import parse_address
from collector.journal.segments import journal_files
from collector.journal.trimming import TickSpan, extent_of
from collector.journal.writer import SUFFIX, folder_name
from collector.printable import one_line
from collector.runs.fetching import FetchRange, fetched
from collector.runs.phases import phases_of
from collector.runs.run_file import NODES_FOLDER, Run, RunNode, write_run

RECOVERY_FOLDER = ".recovery"
"""The directory for recordings that are being fetched, in that of the run."""


def recover(folder: Path, agent: JolokiaSettings) -> None:
    """Complete the run in a directory; what is already complete stays as it is.

    Raises CasstatError, click.UsageError and KeyboardInterrupt.
    """
    run = run_at([folder])
    if run is None:
        raise CasstatError(f"{folder}: not the directory of a run")
    clients = agent_clients(agent)
    last_alive_s = run_folder.last_alive_s(folder)
    with run_folder.recording(folder):
        if run.end_s is None:
            run = _ended(folder, run, time.time() if last_alive_s is None else last_alive_s)
        try:
            run = _completed(folder, run, clients)
        except OSError as error:
            raise CasstatError(f"{error.filename or folder}: {error.strerror}") from None
    for node in run.nodes:
        if node.problem:
            note(one_line(node.problem))
    finish(folder, run, (), quiet=False)


def _ended(folder: Path, run: Run, end_s: float) -> Run:
    """Return the run with an end, and with the phases that follow from its marks."""
    reader = MarksReader(folder)
    reader.new_marks()
    marks = tuple(reader.marks)
    command_end_s = end_s if run.command is None or run.command.end_s is None else run.command.end_s
    return replace(
        run, end_s=end_s, marks=marks, phases=phases_of(run.begin_s, command_end_s, end_s, run.warm_up_s, marks)
    )


def _completed(folder: Path, run: Run, clients: AgentClients) -> Run:
    """Fetch the incomplete nodes and write the run's file; return the run. Raises OSError and KeyboardInterrupt.

    A node's directory is replaced only when its recording has been fetched, and other copies are deleted only when the
    run's file has been written.
    """
    wanted = FetchRange(run.begin_s, time.time() if run.end_s is None else run.end_s)
    # A node without an address never had an agent.
    missing = [node for node in run.nodes if (node.problem or not node.folder) and (node.address or node.journal)]
    local = {node.address: _from_journal(folder, node, wanted) for node in missing if node.journal}
    remote = [node for node in missing if not node.journal]
    error = None
    completed: dict[str, RunNode] = {}
    if remote:
        rmtree(folder / RECOVERY_FOLDER, ignore_errors=True)
        progress = Progress()
        try:
            result = fetched(
                [clients.client(parse_address(node.address)) for node in remote],
                wanted,
                folder / RECOVERY_FOLDER,
                progress.add,
            )
        finally:
            progress.end()
        error = result.error
        completed = {
            before.address: _moved(folder, before, after) for before, after in zip(remote, result.nodes, strict=True)
        }
    run = replace(run, nodes=tuple((local | completed).get(node.address, node) for node in run.nodes))
    write_run(folder, run)
    rmtree(folder / RECOVERY_FOLDER, ignore_errors=True)
    if not any(node.journal for node in run.nodes):
        rmtree(folder / PRIVATE_FOLDER, ignore_errors=True)
    if error is not None:
        raise error
    return run


def _moved(folder: Path, before: RunNode, after: RunNode) -> RunNode:
    """Move what has been fetched to its place, unless there is more already; return the node. Raises OSError."""
    if after.ticks <= before.ticks:
        return replace(before, problem=after.problem or before.problem)
    target = before.folder or _free_folder(folder, after.name)
    rmtree(folder / target, ignore_errors=True)
    (folder / target).parent.mkdir(exist_ok=True)
    (folder / RECOVERY_FOLDER / after.folder).rename(folder / target)
    return replace(after, folder=target, clocks=(*before.clocks, *after.clocks))


def _from_journal(folder: Path, node: RunNode, wanted: FetchRange) -> RunNode:
    """Copy the journal of a private agent that has died; return the node. Raises OSError."""
    journal = folder / node.journal
    target = node.folder or _free_folder(folder, node.name)
    rmtree(folder / target, ignore_errors=True)
    copytree(journal, folder / target, ignore=_others)
    span = TickSpan()
    for file in journal_files(folder / target):
        span += extent_of(file, wanted.begin_s, wanted.end_s, growing=True).span
    if not span.ticks:
        return replace(node, folder="", problem=node.problem or f"{node.name}: no ticks were recorded")
    return replace(
        node, folder=target, journal="", ticks=span.ticks, begin_s=span.begin_s, end_s=span.end_s, problem=""
    )


def _others(_: str, names: Sequence[str]) -> list[str]:
    """Return the files that do not belong to a journal."""
    return [name for name in names if not name.endswith(SUFFIX)]


def _free_folder(folder: Path, name: str) -> str:
    """Return a directory for a node's recording that does not exist yet, relative to the run's."""
    candidates = (
        f"{NODES_FOLDER}/{folder_name(name)}{suffix}" for suffix in ("", *(f"~{n}" for n in range(2, 10_000)))
    )
    return next(candidate for candidate in candidates if not (folder / candidate).exists())
