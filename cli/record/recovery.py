"""Completes a run: fetches the nodes that are missing or incomplete, for example because the recorder died."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from shutil import copyfile, rmtree

from cli import run_folder
from cli.errors import CasstatError, note
from cli.parameters.access_options import JolokiaSettings
from cli.parameters.parameter_types import SshAddressError, is_ssh, parse_ssh_address
from cli.record.clients.result_files import collect_all
from cli.record.run_nodes import PRIVATE_FOLDER
from cli.record.ssh.ssh_agent import SshAgent, report_spools
from cli.recordings.recording_arguments import run_in
from cli.runs.agent_clients import AgentClients, agent_clients
from cli.runs.client_results import FILES_FOLDER, import_after_run
from cli.runs.fetch_program import Progress, require_all
from cli.runs.finish import completing, finish
from cli.runs.marks_file import MarksReader
from cli.runs.run_redaction import redact_written
from collector.agents.addresses import NodeAddress, NodeAddressError, parse_address
from collector.agents.fetching import FetchRange, fetched, recorded_ticks, wanted_range
from collector.file_access import file_errors
from collector.printable import count_text, one_line
from collector.recording.trimming import TickSpan
from collector.recording.writer import files_of, folder_name
from collector.redaction.redactor import Redactor
from collector.redaction.secret_forms import REDACTED
from collector.runs.run import ClientHost, NodeClock, Run, RunNode, phases_of
from collector.runs.run_clock import clock_of, marks_on_run_clock, recorder_clocks
from collector.runs.run_file import CLIENT_HOSTS_FOLDER, FILE, NODES_FOLDER, write_run

RECOVERY_FOLDER = ".recovery"
"""The subdirectory of a run for recordings that are being fetched, and for those that they replace."""


def recover(folder: Path, agent: JolokiaSettings) -> None:
    """Complete the run in a directory; complete recordings are not changed.

    Raises CasstatError (also if a node is still incomplete), click.UsageError and KeyboardInterrupt.
    """
    # Do not create a lock file in a directory that is not a run.
    run_in(folder)
    clients = agent_clients(agent)
    last_alive_s = run_folder.last_alive_s(folder)
    with run_folder.recording(folder):
        # The recorder may have changed the run before it released the lock.
        run = run_in(folder)
        is_killed = run.end_s is None
        if is_killed:
            run = _ended(folder, run, last_alive_s)
        with file_errors(folder, CasstatError), ExitStack() as stack:
            run = _completed(folder, run, clients, stack)
    for node in run.recorded:
        if node.problem:
            note(one_line(node.problem))
    report_spools(run)
    with completing(folder):
        redact_written(folder, _redactor_of(run), note)
        known = (*(run.options or ()), *(run.command.words if run.command else ()))
        if is_killed and any(REDACTED in word for word in known):
            command = shlex.join(["casstat", "runs", "redact", "--redact", "REGEX", str(folder)])
            problem = "what the command wrote may contain secrets that are not known any more"
            note(f"{folder}: {problem} (hint: run '{command}')")
        import_after_run(folder, run, (), redactor=_redactor_of(run))
        finish(folder, run, quiet=False)
    require_all([*run.nodes, *(host for host in run.client_hosts if host.address)])


def _redactor_of(run: Run) -> Redactor:
    """Return what replaces the secrets that have a known form, and those of --redact and of the environment."""
    patterns = []
    for option, value in pairwise(run.options or ()):
        if option == "--redact":
            # An expression that looks like a secret has been changed when it was stored.
            with suppress(re.error):
                patterns.append(re.compile(value))
    return Redactor(tuple(patterns)).knowing_environment(os.environ)


def _is_missing(node: RunNode) -> bool:
    """Return whether a node's recording is incomplete and its missing ticks may still be available.

    A node without an address never had an agent. A node recorded over SSH can be fetched only from its spool.
    """
    is_within_reach = node.journal or node.spool or (node.address and not is_ssh(node.address))
    return bool((node.problem or not node.folder) and is_within_reach)


def _ended(folder: Path, run: Run, last_alive_s: float | None) -> Run:
    """Return the run with its end, marks and phases; it ends when its recorder was last alive or, if unknown, now."""
    reader = MarksReader(folder, _redactor_of(run))
    reader.new_marks()
    marks = tuple(marks_on_run_clock(reader.marks, run.clock_steps))
    command_end_s = None if run.command is None else run.command.end_s
    # The recorder updates the lock file only at intervals, but it was alive when the command began and when it ended.
    known_s = run.begin_s if command_end_s is None else command_end_s
    end_s = max(known_s, clock_of(run)() if last_alive_s is None else last_alive_s)
    phases = phases_of(run.begin_s, end_s if command_end_s is None else command_end_s, end_s, run.warm_up_s, marks)
    return replace(run, end_s=end_s, marks=marks, phases=phases)


def _completed(folder: Path, run: Run, clients: AgentClients, stack: ExitStack) -> Run:
    """Fetch the incomplete nodes and write the run's file; return the run.

    A recording is replaced only after a more complete one has been fetched. Private agents' journals and spools are
    deleted only after the run's file has been written; spools are deleted when `stack` is closed. Raises CasstatError,
    OSError and KeyboardInterrupt.
    """
    wanted, now_s = wanted_range(run), clock_of(run)
    rmtree(folder / RECOVERY_FOLDER, ignore_errors=True)
    for node in run.recorded:
        if node.spool and not _is_missing(node):
            # The recording has been fetched, but the spool may not have been deleted.
            stack.enter_context(_ssh_agent(folder, node)).begin_stop()
    incomplete = {node: _with_leftover(folder, run, node, wanted) for node in run.recorded if _is_missing(node)}
    missing = list(incomplete.values())
    agents = _agents(folder, [node for node in missing if not node.journal], stack)
    remote = [(node, agent) for node, agent in agents if isinstance(agent, NodeAddress)]
    completed: dict[RunNode, RunNode] = {
        node: _from_journal(folder, replace(node, clocks=_clocks_of(node, run)), wanted)
        for node in missing
        if node.journal
    }
    completed |= {node: agent for node, agent in agents if isinstance(agent, RunNode)}
    error = None
    if remote:
        fetching = [clients.fetching_client(agent) for _, agent in remote]
        known = [node for node, _ in remote]
        with Progress() as progress:
            result = fetched(fetching, wanted, folder / RECOVERY_FOLDER, progress.add, known, wall_s=now_s)
        error = result.error
        for before, after in zip(known, result.nodes, strict=True):
            source = folder / RECOVERY_FOLDER / after.folder
            is_better = _is_better(before, after)
            completed[before] = _moved(folder, before, after, source) if is_better else _kept(before, after)
    after_recovery = {node: completed.get(current, node) for node, current in incomplete.items()}
    run = replace(
        run,
        nodes=tuple(after_recovery.get(node, node) for node in run.nodes),
        client_hosts=tuple(_recovered_host(folder, run, host, after_recovery, wanted) for host in run.client_hosts),
    )
    write_run(folder, run)
    rmtree(folder / RECOVERY_FOLDER, ignore_errors=True)
    if not any(node.journal for node in run.nodes):
        rmtree(folder / PRIVATE_FOLDER, ignore_errors=True)
    if error is not None:
        raise error
    return run


def _agents(folder: Path, nodes: Sequence[RunNode], stack: ExitStack) -> list[tuple[RunNode, NodeAddress | RunNode]]:
    """Pair each node with its agent's address or, if no agent can be started, with the node and its problem.

    For each node that was recorded over SSH, starts an agent that runs until `stack` is closed. Raises CasstatError.
    """
    over_ssh: dict[str, SshAgent] = {}
    agents: list[tuple[RunNode, NodeAddress | RunNode]] = []
    try:
        for node in nodes:
            if node.spool:
                over_ssh[node.spool] = stack.enter_context(_ssh_agent(folder, node))
        for agent in over_ssh.values():
            # The agents stop in parallel.
            stack.callback(agent.begin_stop)
        for node in nodes:
            if node.spool in over_ssh:
                agents.append((node, _started(over_ssh[node.spool], node)))
            else:
                agents.append((node, parse_address(node.address)))
    except NodeAddressError as error:
        raise CasstatError(f"{folder / FILE}: {error}") from None
    return agents


def _ssh_agent(folder: Path, node: RunNode) -> SshAgent:
    """Return an agent for a node's existing spool. Raises CasstatError."""
    try:
        source = "host" if isinstance(node, ClientHost) else "auto"
        return SshAgent(parse_ssh_address(node.address), folder, node.spool, source)
    except SshAddressError as error:
        raise CasstatError(f"{folder / FILE}: {error}") from None


def _started(agent: SshAgent, node: RunNode) -> NodeAddress | RunNode:
    """Wait until a node's agent has started; return its address, or the node with the reason why it did not start."""
    try:
        return agent.address()
    except CasstatError as error:
        spool = "" if agent.is_deleted else node.spool
        return replace(node, problem=one_line(f"{node.address}: {error}"), spool=spool)


def _with_leftover(folder: Path, run: Run, node: RunNode, wanted: FetchRange) -> RunNode:
    """Return the node with a recording that was fetched earlier but is not listed in the run's file, if there is one.

    That happens if the recorder dies or the disk is full after the fetch, before the file is updated. A recording
    without ticks in the time range is deleted instead. Raises OSError.
    """
    target = f"{_parent_of(node)}/{folder_name(node.name)}"
    is_used = any(other.folder == target for other in run.recorded)
    is_ambiguous = sum(other.name == node.name for other in run.recorded) > 1
    if node.folder or is_used or is_ambiguous or not (folder / target).is_dir():
        return node
    span, _ = recorded_ticks(folder / target, wanted, _clocks_of(node, run))
    if not span.ticks:
        rmtree(folder / target, ignore_errors=True)
        return node
    return replace(node, folder=target, ticks=span.ticks, begin_s=span.begin_s, end_s=span.end_s)


def _from_journal(folder: Path, node: RunNode, wanted: FetchRange) -> RunNode:
    """Copy the journal of a private agent that has died; return the node. Raises OSError."""
    journal = folder / node.journal
    files = files_of(journal) if journal.is_dir() else []
    span, damaged = recorded_ticks(journal, wanted, node.clocks) if files else (TickSpan(), 0)
    problem, name = "", node.name or node.address
    if not span.ticks:
        problem = f"{name}: no ticks were recorded in this time range"
    elif damaged:
        problem = f"{name}: {count_text(damaged, 'damaged section')} in its journal"
    after = replace(node, ticks=span.ticks, begin_s=span.begin_s, end_s=span.end_s, problem=problem)
    if not _is_better(node, after):
        return _kept(node, after)
    source = folder / RECOVERY_FOLDER / node.journal
    source.mkdir(parents=True)
    for file in files:
        copyfile(file, source / file.name)
    return _moved(folder, node, replace(after, journal=node.journal if problem else ""), source)


def _recovered_host(
    folder: Path, run: Run, host: ClientHost, after_recovery: Mapping[RunNode, RunNode], wanted: FetchRange
) -> ClientHost:
    """Return a client host with its recording, and collect the files of its command. Raises OSError."""
    if host in after_recovery:
        host = host.with_recording(after_recovery[host])
        if not host.spool or not host.results:
            return host
        (problem,) = collect_all(
            [(parse_ssh_address(host.address), host.spool, folder / host.results / FILES_FOLDER)], _redactor_of(run)
        )
        return replace(host, problem=f"{host.address}: {problem}") if problem and not host.problem else host
    if host.address or not (folder / host.folder).is_dir():
        return host
    # The recorder, which may have died, recorded its own machine.
    host = replace(host, clocks=_clocks_of(host, run))
    span, _ = recorded_ticks(folder / host.folder, wanted, host.clocks)
    return replace(host, ticks=span.ticks, begin_s=span.begin_s, end_s=span.end_s) if span.ticks else host


def _clocks_of(node: RunNode, run: Run) -> tuple[NodeClock, ...]:
    """Return the measurements of a node's clock, which may be the recorder's, including the recorder's steps."""
    # An earlier recovery may have added the steps.
    return tuple(dict.fromkeys((*node.clocks, *recorder_clocks(run))))


def _is_better(before: RunNode, after: RunNode) -> bool:
    """Return whether a node's new recording is more complete than its existing one."""
    return after.ticks > before.ticks or (after.ticks == before.ticks > 0 and not after.problem)


def _kept(before: RunNode, after: RunNode) -> RunNode:
    """Return the node with its existing recording, and the reason why it could not be completed."""
    fewer = f"{before.name or before.address}: its journal contains fewer ticks than were fetched earlier"
    return replace(before, problem=after.problem or before.problem or fewer)


def _moved(folder: Path, before: RunNode, after: RunNode, source: Path) -> RunNode:
    """Move a node's new recording from `source` into the run; return the node. Raises OSError."""
    target = before.folder or _free_folder(folder / _parent_of(before), after.name or after.address)
    if (folder / target).exists():
        replaced = folder / RECOVERY_FOLDER / "replaced" / target
        replaced.parent.mkdir(parents=True, exist_ok=True)
        (folder / target).rename(replaced)
    (folder / target).parent.mkdir(parents=True, exist_ok=True)
    source.rename(folder / target)
    return replace(after, folder=target)


def _free_folder(parent: Path, name: str) -> str:
    """Return a path, relative to the run's directory, for a new directory with a recording in `parent`."""
    names = (f"{folder_name(name)}{suffix}" for suffix in ("", *(f"~{n}" for n in range(2, 10_000))))
    return f"{parent.name}/{next(name for name in names if not (parent / name).exists())}"


def _parent_of(node: RunNode) -> str:
    return CLIENT_HOSTS_FOLDER if isinstance(node, ClientHost) else NODES_FOLDER
