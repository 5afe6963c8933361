"""Completes a run whose recorder died: fetches what the agents recorded, and finishes the run."""

import time
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

from cli.errors import CasstatError, note
from cli.parameters.jolokia_options import JolokiaSettings
from cli.recordings.run_defaults import run_at
from cli.runs import run_folder
from cli.runs.agent_clients import AgentClients, agent_clients
from cli.runs.fetch_program import Progress
from cli.runs.finish import finish
from cli.runs.marks_file import MarksReader
from cli.runs.run_nodes import PRIVATE_FOLDER
from collector.cluster.clock_correction import ClockCorrection
from collector.cluster.live.agent_connection import AgentError
from collector.cluster.live.node_address import parse_address
from collector.printable import one_line
from collector.runs.agent_client import AgentClient
from collector.runs.fetching import FetchRange, fetched
from collector.runs.phases import phases_of
from collector.runs.run_file import NODES_FOLDER, Run, RunNode, is_finite, write_run


def recover(folder: Path, agent: JolokiaSettings) -> None:
    """Complete the run in a directory. Raises CasstatError, click.UsageError and KeyboardInterrupt."""
    run = run_at([folder])
    if run is None:
        raise CasstatError(f"{folder}: not the directory of a run")
    clients = agent_clients(agent)
    with run_folder.recording(folder):
        if run.end_s is None:
            run = _ended(folder, run, _end_s(run, clients))
        rmtree(folder / NODES_FOLDER, ignore_errors=True)
        run = replace(run, nodes=_nodes(folder, run, clients))
        try:
            write_run(folder, run)
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


def _is_private(node: RunNode) -> bool:
    return node.folder.startswith(f"{PRIVATE_FOLDER}/")


def _end_s(run: Run, clients: AgentClients) -> float:
    """Return when the run's last lease expired, on the local clock; the present time if a run is still active."""
    ends_s = []
    for node in run.nodes:
        if _is_private(node):
            continue
        client = clients.client(parse_address(node.address))
        try:
            ends_s += _ends_s(client, node.clock_correction(), run)
        except AgentError as error:
            note(one_line(error))
        finally:
            client.close()
    return max(ends_s, default=time.time())


def _ends_s(client: AgentClient, clock: ClockCorrection, run: Run) -> list[float]:
    """Return the ends of an agent's runs with the run's name that began within a minute of it, on the local clock."""
    try:
        return [
            clock.reference_s(float(other["end_s"])) if is_finite(other["end_s"]) else time.time()
            for other in client.json("/api/v1/runs")
            if other["name"] == run.name and abs(clock.reference_s(other["begin_s"]) - run.begin_s) < 60
        ]
    except (KeyError, TypeError):
        return []


def _nodes(folder: Path, run: Run, clients: AgentClients) -> tuple[RunNode, ...]:
    """Fetch the nodes with agents, and keep those whose journals are already in the run's directory."""
    remote = [node for node in run.nodes if not _is_private(node)]
    progress = Progress()
    try:
        result = fetched(
            [clients.client(parse_address(node.address)) for node in remote],
            FetchRange(run.begin_s, time.time() if run.end_s is None else run.end_s),
            folder,
            progress.add,
        )
    finally:
        progress.end()
    if result.error is not None:
        raise result.error
    by_address = {
        before.address: replace(after, clocks=(*before.clocks, *after.clocks))
        for before, after in zip(remote, result.nodes, strict=True)
    }
    return tuple(by_address.get(node.address, node) for node in run.nodes)
