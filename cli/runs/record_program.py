"""The program behind `casstat record`."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from re import Pattern
from types import FrameType
from typing import BinaryIO, NoReturn

from cli.errors import CasstatError, note
from cli.parameters.jolokia_options import JolokiaSettings
from cli.runs import run_folder
from cli.runs.agent_clients import AgentClients, agent_clients
from cli.runs.command_runner import CommandResult, CommandRunner, OutputObserver, open_standard_streams
from cli.runs.fetch_program import Progress
from cli.runs.finish import finish
from cli.runs.marks_file import MarksReader
from cli.runs.output_marker import OutputMarker
from cli.runs.run_nodes import PRIVATE_FOLDER, AgentState, RunAgents, agents_of, nodes_of, states_of, with_peers
from cli.runs.ssh_agent import report_spools
from cli.runs.status_line import COLUMNS, StatusLine
from collector.cluster.live.live_cluster import Plan
from collector.cluster.live.node_address import NodeAddress
from collector.printable import count_text, one_line
from collector.runs.agent_client import AgentClient
from collector.runs.agent_runs import AgentRuns
from collector.runs.fetching import FetchRange, fetched, introductions, last_tick_s
from collector.runs.phases import phases_of
from collector.runs.run_file import NodeClock, Run, RunCommand, RunFileError, RunNode, is_run, read_run, write_run
from exporters.live.live_frames import LiveFrames, Wanted
from exporters.summary.conditions import Condition

# The exit status if a condition of --fail-if holds.
CONDITION_MET = 1
NOT_FOUND, NOT_EXECUTABLE = 127, 126
LOG_FILE = "command.log"
MARKS_EVERY_S = 0.5
# How long an agent may take from its start until Cassandra answers it.
FIRST_TICK_S = 5.0
# How long to wait until every agent has recorded the tick after the command's end.
LAST_TICK_S = 5.0
POLL_S = 0.1
MIN_FREE_BYTES = 64 << 20


@dataclass(frozen=True)
class RecordSettings:
    """The options of `casstat record`; see `casstat record --help`."""

    command: tuple[str, ...]
    nodes: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    name: str = ""
    tags: tuple[tuple[str, str], ...] = ()
    warm_up: float = 0.0
    cool_down: float = 0.0
    folder: Path | None = None
    mark_regex: Pattern[bytes] | None = None
    fail_if: tuple[Condition, ...] = ()
    require_all: bool = False
    quiet: bool = False
    agent: JolokiaSettings = field(default_factory=JolokiaSettings)
    jolokia: JolokiaSettings = field(default_factory=JolokiaSettings)


def record(settings: RecordSettings) -> int:
    """Run the command while recording all nodes, and return the exit status.

    Raises CasstatError and click.UsageError. Whatever has been recorded by then is kept.
    """
    open_standard_streams()
    program = shutil.which(settings.command[0])
    if program is None:
        return _not_runnable(settings.command[0])
    clients = agent_clients(settings.agent)
    addresses = [*nodes_of(settings.nodes, clients), *with_peers(settings.seeds, clients)]
    begin_s = time.time()
    name = settings.name or Path(settings.command[0]).name
    folder = settings.folder or run_folder.default_folder(name, begin_s)
    is_new = run_folder.create(folder)
    with ExitStack() as stack:
        stack.enter_context(_interruptible())
        stack.enter_context(run_folder.recording(folder))
        run_folder.require_empty(folder)
        stack.callback(_tidy, folder, is_new=is_new)
        _require_space(folder)
        agents = agents_of(list(dict.fromkeys(addresses)), folder, settings.jolokia, clients, stack)
        private = frozenset(agent for agent, journal in agents.journals.items() if journal)
        clients = replace(clients, private=private)
        recorder = _Recorder(settings, clients, agents, folder, name)
        recorder.preflight()
        with _recoverable(folder):
            result = recorder.run()
            run = recorder.fetch()
        if any(node.problem and node.address for node in run.nodes):
            report_spools(run)
            note(f"the run is incomplete {_recovery_hint(folder)}")
    met = finish(folder, run, settings.fail_if, quiet=settings.quiet)
    if result.exit_code:
        return result.exit_code
    return CONDITION_MET if met else 0


def _not_runnable(command: str) -> int:
    """Print why a command cannot be run; return the exit status that `env` would return."""
    if "/" in command and Path(command).exists():
        note(f"{one_line(command)}: not executable")
        return NOT_EXECUTABLE
    note(f"{one_line(command)}: command not found")
    return NOT_FOUND


def _require_space(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < MIN_FREE_BYTES:
        raise CasstatError(f"{folder}: only {free >> 20} MiB free (hint: free at least {MIN_FREE_BYTES >> 20} MiB)")


def _tidy(folder: Path, *, is_new: bool) -> None:
    """Remove the journals of private agents if there is no run, or if the run's file says that they have been fetched.

    If there is no run, remove the directory as well if it `is_new`.
    """
    if not is_run(folder):
        shutil.rmtree(folder / PRIVATE_FOLDER, ignore_errors=True)
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
        return
    try:
        run = read_run(folder)
    except (OSError, RunFileError):
        return
    if not any(node.journal for node in run.nodes):
        shutil.rmtree(folder / PRIVATE_FOLDER, ignore_errors=True)


@contextmanager
def _recoverable(folder: Path) -> Iterator[None]:
    """Add to any error how the run can be completed, if its file exists, and print what is still on other machines."""
    try:
        yield
    except BaseException as error:
        if not is_run(folder):
            raise
        with suppress(OSError, RunFileError):
            report_spools(read_run(folder))
        if isinstance(error, CasstatError):
            raise CasstatError(f"{error} {_recovery_hint(folder)}") from None
        note(f"the run is incomplete {_recovery_hint(folder)}")
        raise


def _recovery_hint(folder: Path) -> str:
    return f"(hint: run 'casstat fetch --recover {folder}')"


@contextmanager
def _interruptible() -> Iterator[None]:
    """Make SIGTERM and SIGHUP raise KeyboardInterrupt, as Ctrl-C does, unless they are ignored (as under nohup)."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {
        number: signal.signal(number, interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Recorder:
    """A run in progress."""

    def __init__(
        self,
        settings: RecordSettings,
        clients: AgentClients,
        agents: RunAgents,
        folder: Path,
        name: str,
    ) -> None:
        self._settings = settings
        self._clients = clients
        self._agents = tuple(agents.journals)
        self._journals = agents.journals
        self._failed = agents.failed
        self._folder = folder
        self._marks = MarksReader(folder)
        self._nodes: list[RunNode] = []
        self._run = Run(name, time.time(), None, version("casstat"), dict(settings.tags), warm_up_s=settings.warm_up)

    def preflight(self) -> None:
        """Ask every agent for its node and clock. Raises CasstatError if too few nodes can be recorded."""
        clients = self._new_clients(self._agents)
        self._nodes = introductions(clients)
        states = self._states(clients)
        if any(self._journals.values()):
            # A private agent knows its node's name only after its first tick.
            self._nodes = introductions(clients)
        for client in clients:
            client.close()
        problems = [
            node.problem or ("" if state.answers else f"{node.address}: Cassandra does not answer")
            for node, state in zip(self._nodes, states, strict=True)
        ]
        problems += [node.problem for node in self._failed]
        failed = sum(map(bool, problems))
        for problem in filter(None, problems):
            note(one_line(problem))
        if failed == len(problems):
            raise CasstatError("no node can be recorded (hint: run 'casstat doctor' on the node)")
        if failed and self._settings.require_all:
            raise CasstatError(f"{failed} of {count_text(len(problems), 'node')} cannot be recorded")
        runs = tuple(run for state in states for run in state.runs)
        for run in runs:
            note(f"another run is active: {run}")
        for node in self._nodes:
            for clock in node.clocks:
                if node.interval_s is not None and clock.error_s > node.interval_s / 2:
                    note(
                        f"{one_line(node.name)}: the offset of its clock is uncertain by {clock.error_s:.2f} s,"
                        f" more than half an interval"
                    )
        # Until the journals of private agents are fetched, they can be read where they are written.
        nodes = (
            replace(node, journal=self._journals[agent], spool=agent.tunnel.spool if agent.tunnel else "")
            for agent, node in self._by_agent()
        )
        self._run = replace(self._run, nodes=(*nodes, *self._failed), other_runs=runs)

    def _by_agent(self) -> Iterator[tuple[NodeAddress, RunNode]]:
        return zip(self._agents, self._nodes, strict=True)

    def _states(self, clients: Sequence[AgentClient]) -> list[AgentState]:
        """Return the agents' states; agents that have just started get some time for their first tick."""
        ends_s = time.monotonic() + FIRST_TICK_S
        while True:
            states = states_of(clients)
            are_final = all(state.answers or node.problem for state, node in zip(states, self._nodes, strict=True))
            if are_final or time.monotonic() >= ends_s:
                return states
            time.sleep(POLL_S)

    def run(self) -> CommandResult:
        """Run the command between the beginning and the end of the run on the agents; return its result."""
        settings = self._settings
        reached = [agent for agent, node in self._by_agent() if not node.problem]
        runs = AgentRuns(self._new_clients(reached), note)
        ended = threading.Event()
        forwarding = threading.Thread(target=self._forward_marks, args=(runs, ended), name="marks")
        with ExitStack() as stack:
            stack.callback(runs.end)
            runs.begin(self._run.name)
            begin_s = time.time()
            command = RunCommand(settings.command, begin_s)
            self._write(replace(self._run, begin_s=begin_s, command=command))
            forwarding.start()
            stack.callback(forwarding.join)
            stack.callback(ended.set)
            result = self._run_command()
            if result.problem:
                note(result.problem)
            if result.left:
                note("processes of the command are still running in the background; the run ends without them")
            command_end_s = time.time()
            command = replace(command, end_s=command_end_s, exit_code=result.exit_code)
            self._write(replace(self._run, command=command))
            self._wait(settings.cool_down)
            self._wait_for_last_tick(reached, command_end_s)
            end_s = time.time()
        marks = tuple(self._marks.marks)
        phases = phases_of(begin_s, command_end_s, end_s, settings.warm_up, marks)
        self._write(replace(self._run, end_s=end_s, phases=phases, marks=marks))
        return result

    def fetch(self) -> Run:
        """Fetch the recordings of the run's time range; return the run. Raises CasstatError and KeyboardInterrupt."""
        progress = Progress()
        run = self._run
        wanted = FetchRange(run.begin_s, time.time() if run.end_s is None else run.end_s)
        try:
            clients = [self._clients.fetching_client(agent) for agent in self._agents]
            result = fetched(clients, wanted, self._folder, progress.add)
        finally:
            progress.end()
        nodes = tuple(
            replace(
                after,
                name=after.name or before.name,
                interval_s=after.interval_s or before.interval_s,
                casstat=after.casstat or before.casstat,
                clocks=(*before.clocks, *after.clocks),
                journal=before.journal if after.problem else "",
                spool=before.spool,
            )
            for before, after in zip(run.nodes[: len(self._agents)], result.nodes, strict=True)
        )
        self._write(replace(run, nodes=(*nodes, *self._failed)))
        for node in nodes:
            if node.problem:
                note(one_line(node.problem))
            self._warn_about_clock(node)
        if isinstance(result.error, OSError):
            raise CasstatError(f"{result.error.filename or self._folder}: {result.error.strerror}")
        if result.error is not None:
            raise result.error
        return self._run

    def _warn_about_clock(self, node: RunNode) -> None:
        change_s = _change_s(node.clocks)
        if node.interval_s is not None and abs(change_s) > node.interval_s / 2:
            note(
                f"{one_line(node.name)}: its clock changed by {change_s:+.2f} s during the run, so its rows may be"
                " shifted"
            )

    def _run_command(self) -> CommandResult:
        settings = self._settings
        environ = {
            **os.environ,
            run_folder.RUN_VARIABLE: self._run.name,
            run_folder.FOLDER_VARIABLE: str(self._folder.absolute()),
        }
        with ExitStack() as stack:
            observers: list[OutputObserver] = []
            if settings.mark_regex is not None:
                observers.append(OutputMarker(settings.mark_regex, self._folder))
            if not settings.quiet and os.isatty(1) and os.isatty(2):
                frames = LiveFrames(self._live_plan(), Wanted(COLUMNS))
                frames.start()
                stack.callback(frames.stop)
                status = StatusLine(frames, 2)
                stack.callback(status.erase)
                observers.append(status)
            log = stack.enter_context(_CommandLog(self._folder / LOG_FILE))
            return CommandRunner(settings.command, log, environ, _Observers(observers)).run()

    def _live_plan(self) -> Plan:
        def connect(_: str) -> NoReturn:
            raise AssertionError("private agents replace Jolokia agents")

        access = self._clients.access_to(*self._agents)
        return Plan(self._agents, (), 1.0, access, self._clients.tls, connect)

    def _forward_marks(self, runs: AgentRuns, ended: threading.Event) -> None:
        """Send marks to the agents until the run has ended, and show that this process is alive."""
        is_last = False
        while not is_last:
            is_last = ended.wait(MARKS_EVERY_S)
            run_folder.show_alive(self._folder)
            for mark in self._marks.new_marks():
                runs.mark(mark.text)

    def _wait(self, seconds: float) -> None:
        """Wait for the cool-down; Ctrl-C ends it."""
        try:
            time.sleep(seconds)
        except KeyboardInterrupt:
            note("cool-down interrupted")

    def _wait_for_last_tick(self, agents: Sequence[NodeAddress], command_end_s: float) -> None:
        """Wait until every agent has recorded a tick after the command's end, so that all operations are recorded."""
        clocks = {node.address: node.clock_correction() for node in self._nodes}
        clients = self._new_clients(agents)
        waiting = list(clients)
        slowest_s = max((node.interval_s or 0.0 for node in self._nodes), default=0.0)
        ends_s = time.monotonic() + LAST_TICK_S + 2 * slowest_s
        try:
            while time.monotonic() < ends_s:
                waiting = [
                    client
                    for client in waiting
                    # An agent that does not answer is not waited for.
                    if (tick_s := last_tick_s(client)) is not None
                    and clocks[client.address.url].reference_s(tick_s) < command_end_s
                ]
                if not waiting:
                    break
                time.sleep(POLL_S)
        except KeyboardInterrupt:
            note("interrupted; the last tick may be missing")
        finally:
            for client in clients:
                client.close()

    def _new_clients(self, agents: Iterable[NodeAddress]) -> list[AgentClient]:
        return [self._clients.client(agent) for agent in agents]

    def _write(self, run: Run) -> None:
        """Write the run's file. Raises CasstatError."""
        self._run = run
        try:
            write_run(self._folder, run)
        except OSError as error:
            raise CasstatError(f"{error.filename or self._folder}: {error.strerror}") from None


def _change_s(clocks: Sequence[NodeClock]) -> float:
    """Return how far a clock moved relative to the local one between its first and last measurement."""
    return clocks[-1].offset_s - clocks[0].offset_s if clocks else 0.0


class _Observers(OutputObserver):
    """Several observers of the same output."""

    def __init__(self, observers: Sequence[OutputObserver]) -> None:
        self._observers = observers

    def before_output(self, data: bytes, stream: int) -> None:
        for observer in self._observers:
            observer.before_output(data, stream)

    def after_output(self) -> None:
        for observer in self._observers:
            observer.after_output()

    def end(self) -> None:
        for observer in self._observers:
            observer.end()


class _CommandLog:
    """The file with the command's output. If it cannot be written, the command continues."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._error = ""

    def __enter__(self) -> "_CommandLog":
        try:
            self._file = self._path.open("wb")
        except OSError as error:
            self._error = str(error.strerror)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                self._error = self._error or str(error.strerror)
        if self._error:
            note(f"{self._path}: the command's output is incomplete: {self._error}")

    def write(self, data: bytes) -> None:
        """Append output; nothing is written after the first error."""
        if self._file is None or self._error:
            return
        try:
            self._file.write(data)
        except OSError as error:
            self._error = str(error.strerror)
