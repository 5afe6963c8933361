"""Records a run: begins and ends it on its agents, runs its command, and fetches the recordings."""

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cli import run_folder
from cli.errors import CasstatError, note
from cli.record.command.output_observers import ClientHosts
from cli.record.command.supervised_command import CommandResult
from cli.record.run_nodes import node_names
from cli.runs.agent_clients import AgentClients
from cli.runs.fetch_program import Progress
from cli.runs.marks_file import MarksReader
from collector.agents.addresses import NodeAddress
from collector.agents.agent_client import AgentRuns
from collector.agents.agent_nodes import description_of, last_tick_s, membership_of
from collector.agents.fetching import FetchRange, fetched, wanted_range
from collector.file_access import file_errors
from collector.printable import one_line
from collector.redaction.redactor import Redactor
from collector.runs.cluster_members import Membership, clusters_of
from collector.runs.run import Run, RunCommand, RunNode, phases_of, step_text
from collector.runs.run_clock import RunClock, marks_on_run_clock, recorder_clocks
from collector.runs.run_file import redacted_run, write_run

MARKS_EVERY_S = 0.5
# How long to wait, in addition to two sampling intervals, for every agent to record a tick after the command has ended.
LAST_TICK_S = 5.0
POLL_S = 0.1


class Recorder:
    """Records a run in `folder` on its agents.

    `run.nodes` contains the nodes of `agents`, in the same order, followed by those that cannot be recorded. `hosts`
    are the machines on which the command runs. Of secrets, only what `redactor` leaves is written and sent to agents.
    `memberships` are what the nodes knew about their clusters before, and `reached` the addresses at which nodes are
    reached that did not know their own.
    """

    def __init__(
        self,
        run: Run,
        agents: Sequence[NodeAddress],
        clients: AgentClients,
        folder: Path,
        hosts: ClientHosts,
        redactor: Redactor,
        memberships: Sequence[Membership] = (),
        reached: Mapping[str, Collection[str]] = MappingProxyType({}),
        clock: RunClock | None = None,
    ) -> None:
        self._redactor = redactor
        self._run = redacted_run(run, redactor)
        self._agents = tuple(agents)
        self._nodes = run.nodes[: len(agents)]
        self._failed = run.nodes[len(agents) :]
        self._clients = clients
        self._folder = folder
        self._hosts = hosts
        self._marks = MarksReader(folder, redactor)
        self._memberships = list(memberships)
        self._reached = reached
        self._clock = clock or RunClock()
        # The thread that forwards marks also writes the run's file.
        self._lock = threading.Lock()

    def run(
        self,
        words: Sequence[str],
        execute: Callable[[], CommandResult],
        cool_down_s: float,
        duration_s: float | None = None,
    ) -> CommandResult:
        """Begin the run on the agents, run the command, and end the run; return the command's result.

        `execute` runs the command; its words and its duration are for the run's file. Raises CasstatError.
        """
        reached = [agent for agent, node in zip(self._agents, self._nodes, strict=True) if not node.problem]
        runs = AgentRuns([self._clients.client(agent) for agent in reached], note)
        ended = threading.Event()
        forwarding = threading.Thread(target=self._forward_marks, args=(runs, ended), name="marks")
        with ExitStack() as stack:
            stack.callback(self._hosts.stop)
            stack.callback(runs.end)
            runs.begin(self._run.name)
            # The beginning may lie in the future.
            self._find_step()
            begin_s = self._hosts.begin(self._clock.now_s())
            command = RunCommand(tuple(words), begin_s, duration_s=duration_s)
            self._change(begin_s=begin_s, command=command, client_hosts=self._hosts.entries())
            forwarding.start()
            stack.callback(forwarding.join)
            stack.callback(ended.set)
            result = execute()
            result = replace(result, problem=self._redactor.text(result.problem))
            if result.problem:
                note(result.problem)
            if result.left:
                note("processes of the command are still running in the background; the run does not wait for them")
            command_end_s = max(begin_s, self._clock.at(result.ended_at_s))
            command = replace(
                command, end_s=command_end_s, exit_code=result.exit_code, ended_by_duration=result.ended_by_duration
            )
            self._change(command=command)
            _wait(cool_down_s)
            self._wait_for_last_tick(reached, command_end_s)
            end_s = max(command_end_s, self._clock.now_s())
        self._find_step()
        marks = tuple(marks_on_run_clock(self._marks.marks, self._run.clock_steps))
        phases = phases_of(begin_s, command_end_s, end_s, self._run.warm_up_s, marks)
        self._change(end_s=end_s, phases=phases, marks=marks, client_hosts=self._hosts.entries())
        return result

    def fetch(self) -> Run:
        """Fetch the recordings of the run's time range; return the run. Raises CasstatError and KeyboardInterrupt."""
        run = self._run
        wanted = wanted_range(run)
        with file_errors(self._folder, CasstatError):
            self._fetch_nodes(wanted)
            with Progress() as progress:
                hosts = self._hosts.fetch(wanted, progress.add)
            hosts = tuple(host if host.address else replace(host, clocks=recorder_clocks(run)) for host in hosts)
        self._change(client_hosts=hosts)
        for host in hosts:
            if host.problem:
                note(one_line(self._redactor.text(host.problem)))
            if host.address:
                _warn_about_clock(host)
        return self._run

    def _fetch_nodes(self, wanted: FetchRange) -> None:
        """Fetch the nodes' recordings. Raises CasstatError, OSError and KeyboardInterrupt."""
        clients = [self._clients.fetching_client(agent) for agent in self._agents]
        known = self._run.nodes[: len(clients)]
        with Progress() as progress:
            result = fetched(clients, wanted, self._folder, progress.add, known, wall_s=self._clock.now_s)
        all_nodes = (*result.nodes, *self._failed)
        clusters = clusters_of(self._memberships, node_names(all_nodes), self._reached)
        self._change(nodes=all_nodes, clusters=clusters)
        for node in result.nodes:
            if node.problem:
                note(one_line(self._redactor.text(node.problem)))
            _warn_about_clock(node)
        if result.error is not None:
            raise result.error

    def _forward_marks(self, runs: AgentRuns, ended: threading.Event) -> None:
        """Send marks to the agents, show that this process is alive, and find clock steps, until the run has ended."""
        is_last = False
        while not is_last:
            is_last = ended.wait(MARKS_EVERY_S)
            run_folder.show_alive(self._folder, self._clock.now_s())
            self._find_step()
            for mark in self._marks.new_marks():
                runs.mark(mark.text)

    def _find_step(self) -> None:
        """Note whether this machine's clock has been set since the last call."""
        step = self._clock.new_step()
        if step is not None:
            note(f"{step_text(step)}; the run's times go on as before")
            with suppress(CasstatError):
                # The last write of the file reports the same error.
                self._change(clock_steps=(*self._run.clock_steps, step))

    def _wait_for_last_tick(self, agents: Sequence[NodeAddress], command_end_s: float) -> None:
        """Wait until every agent has recorded a tick after the command's end, to cover its last operations.

        Also remembers what the nodes know about their clusters, which others may have joined.
        """
        nodes = {node.address: node for node in self._nodes}
        descriptions: dict[str, Mapping[str, Any]] = {}
        first_s: dict[str, float] = {}
        slowest_s = max((node.interval_s or 0.0 for node in self._nodes), default=0.0)
        ends_s = time.monotonic() + LAST_TICK_S + 2 * slowest_s
        try:
            with self._clients.connected(agents) as waiting:
                while waiting and time.monotonic() < ends_s:
                    descriptions |= {client.address.url: description_of(client) for client in waiting}
                    waiting = [
                        client
                        for client in waiting
                        # Do not wait for agents that do not answer.
                        if (tick_s := last_tick_s(descriptions[url := client.address.url])) is not None
                        and _is_before(nodes[url], tick_s, first_s.setdefault(url, tick_s), command_end_s)
                    ]
                    if waiting:
                        time.sleep(POLL_S)
        except KeyboardInterrupt:
            note("interrupted; the last tick may be missing")
        finally:
            self._memberships += [membership_of(url, content) for url, content in descriptions.items()]

    def _change(self, **fields: Any) -> None:
        """Change fields of the run, and write its file. Raises CasstatError."""
        with self._lock:
            self._run = redacted_run(replace(self._run, **fields), self._redactor)
            with file_errors(self._folder, CasstatError):
                write_run(self._folder, self._run)


def _is_before(node: RunNode, tick_s: float, first_s: float, command_end_s: float) -> bool:
    """Return whether a node's last tick may be before the command's end; `first_s` is the first one known since."""
    before_s = command_end_s - node.clock_correction().reference_s(tick_s)
    if abs(before_s) > LAST_TICK_S + 2 * (node.interval_s or 0.0):
        # The clock was set, so only a later tick is certain to follow the command's end.
        return tick_s == first_s
    return before_s > 0


def _warn_about_clock(node: RunNode) -> None:
    """Print a note if the node's clock moved relative to the local one between its first and last measurement."""
    change_s = node.clocks[-1].offset_s - node.clocks[0].offset_s if node.clocks else 0.0
    if node.interval_s is not None and abs(change_s) > node.interval_s / 2:
        note(f"{one_line(node.name)}: its clock changed by {change_s:+.2f} s during the run")


def _wait(seconds: float) -> None:
    """Wait for the cool-down; Ctrl-C ends it."""
    try:
        time.sleep(seconds)
    except KeyboardInterrupt:
        note("cool-down interrupted")
