"""The program behind `casstat record`: records a run, completes it, and returns the exit status."""

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from re import Pattern

import click

from cli import run_folder
from cli.errors import CasstatError, note
from cli.parameters.access_options import AGENT, JolokiaSettings, given_options
from cli.parameters.parameter_types import SshAddress
from cli.process_setup import interruptible, open_standard_streams
from cli.record.clients.local_client_host import LocalClientHost
from cli.record.clients.remote_client_hosts import RemoteClientHosts
from cli.record.command.output_observers import live_plan, run_command
from cli.record.command.supervised_command import CommandResult
from cli.record.command.supervisor import NOT_EXECUTABLE, NOT_FOUND
from cli.record.preflight import preflight
from cli.record.recorder import Recorder
from cli.record.run_nodes import PRIVATE_FOLDER, agents_of, cluster_of, nodes_of, seeds_of, ssh_addresses, with_peers
from cli.record.ssh.ssh_agent import report_spools
from cli.runs.agent_clients import AgentClients, agent_clients
from cli.runs.client_results import import_after_run, require_valid_choices
from cli.runs.finish import completing, finish
from cli.runs.run_redaction import redact_written
from collector.agents.addresses import NodeAddress
from collector.live.live_cluster import Plan
from collector.printable import one_line
from collector.redaction.redactor import Redactor
from collector.runs.run import Run, RunCondition, accepted_name, command_name
from collector.runs.run_clock import RunClock
from collector.runs.run_file import CLIENT_HOSTS_FOLDER, RunFileError, is_run, read_run
from exporters.results.summary.conditions import Condition

# The exit status if a condition of --fail-if holds.
CONDITION_MET = 1
MIN_FREE_BYTES = 64 << 20


Around = Callable[[Plan], AbstractContextManager[None]]
"""Returns a context for the time in which a run's command runs, from a plan for following the run's agents."""


@dataclass(frozen=True)
class RecordSettings:
    """The options of `casstat record`; see `casstat record --help`.

    load_s  how long the command's load is to run, for a program that knows it; None otherwise.
    has_summary  whether to print the summary.
    secrets  the secrets of the sweep to which the run belongs, each with what replaces it.
    """

    command: tuple[str, ...]
    nodes: tuple[str, ...] = ()
    client_hosts: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    name: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    duration: float | None = None
    warm_up: float = 0.0
    cool_down: float = 0.0
    folder: Path | None = None
    mark_regex: Pattern[bytes] | None = None
    fail_if: tuple[Condition, ...] = ()
    require_all: bool = False
    quiet: bool = False
    report: bool = True
    clients: tuple[str, ...] = ()
    serve: str | None = None
    redact: tuple[Pattern[str], ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict)
    load_s: float | None = None
    has_summary: bool = True
    agent: JolokiaSettings = field(default_factory=JolokiaSettings)
    jolokia: JolokiaSettings = field(default_factory=JolokiaSettings)


@dataclass(frozen=True)
class _Start:
    """A run that is about to start: its settings, the addresses that they contain, its name, time and directory."""

    settings: RecordSettings
    clients: AgentClients
    addresses: Sequence[NodeAddress | SshAddress]
    client_hosts: Sequence[SshAddress]
    name: str
    begin_s: float
    folder: Path
    redactor: Redactor


@dataclass(frozen=True)
class RecordedRun:
    """A run that has been recorded and completed.

    result         how its command ended.
    condition_met  whether a condition of --fail-if is met or cannot be checked.
    """

    folder: Path
    result: CommandResult
    condition_met: bool

    @property
    def exit_status(self) -> int:
        return self.result.exit_code or (CONDITION_MET if self.condition_met else 0)


def record(settings: RecordSettings) -> int:
    """Run the command while recording all nodes, and return the exit status.

    Raises CasstatError and click.UsageError. After an error, recordings are kept only if the run has begun.
    """
    open_standard_streams()
    if not settings.client_hosts and shutil.which(settings.command[0]) is None:
        return _not_runnable(settings.command[0])
    return recorded_run(settings).exit_status


def recorded_run(settings: RecordSettings, around: Around | None = None) -> RecordedRun:
    """Run the command while recording all nodes, and complete the run; the standard streams must be open.

    If the command cannot be started, the result has the exit status that `env` would return. Raises CasstatError,
    click.UsageError and KeyboardInterrupt. After an error, recordings are kept only if the run has begun.
    """
    start = _start(settings)
    is_new = run_folder.create(start.folder)
    # Treat these signals like Ctrl-C: complete the run with what has been recorded.
    with interruptible():
        with ExitStack() as stack:
            stack.enter_context(run_folder.recording(start.folder))
            run_folder.require_empty(start.folder)
            stack.callback(_tidy, start.folder, is_new=is_new)
            _require_space(start.folder)
            result, run = _recorded(start, stack, around)
        with completing(start.folder):
            redact_written(start.folder, start.redactor, note)
            import_after_run(start.folder, run, settings.clients, settings.load_s, start.redactor)
            is_quiet = settings.quiet or not settings.has_summary
            met = finish(start.folder, run, quiet=is_quiet, has_report=settings.report)
    return RecordedRun(start.folder, result, met)


def require_valid(settings: RecordSettings) -> None:
    """Check the options that do not depend on the state of the nodes. Raises click.UsageError."""
    clients = agent_clients(settings.agent)
    nodes_of(settings.nodes, clients)
    seeds_of(settings.seeds, clients)
    client_hosts = ssh_addresses(settings.client_hosts)
    require_valid_choices(settings.clients)
    if settings.serve is not None and client_hosts:
        raise click.UsageError("--serve reads only files on this machine, so it cannot be used with --client-host")
    if settings.duration is not None and settings.warm_up >= settings.duration:
        raise click.UsageError("--warm-up must be shorter than --duration")


def _start(settings: RecordSettings) -> _Start:
    """Resolve the addresses, and choose the name and the directory. Raises CasstatError and click.UsageError."""
    require_valid(settings)
    clients = agent_clients(settings.agent)
    addresses = [*nodes_of(settings.nodes, clients), *with_peers(settings.seeds, clients)]
    client_hosts = ssh_addresses(settings.client_hosts)
    begin_s = time.time()
    redactor = redactor_of(settings)
    name = accepted_name(redactor.text(settings.name or command_name(settings.command)))
    folder = settings.folder or run_folder.default_folder(name, begin_s)
    return _Start(settings, clients, list(dict.fromkeys(addresses)), client_hosts, name, begin_s, folder, redactor)


def redactor_of(settings: RecordSettings, placeholders: Iterable[str] = ()) -> Redactor:
    """Return what replaces the secrets in the command, its environment, and the texts about its run."""
    redactor = Redactor(settings.redact, settings.secrets, frozenset(placeholders)).knowing_environment(os.environ)
    tags = ([f"{key}={value}"] for key, value in settings.tags)
    for words in (settings.command, *tags, *([text] for text in (settings.name, *settings.clients) if text)):
        redactor = redactor.knowing_command(words)
    return redactor


def _recorded(start: _Start, stack: ExitStack, around: Around | None) -> tuple[CommandResult, Run]:
    """Run the command while recording, and fetch the recordings; return the command's result and the run.

    What has been started is stopped when `stack` is closed. Raises CasstatError, click.UsageError and
    KeyboardInterrupt.
    """
    settings, folder = start.settings, start.folder
    clock = RunClock()
    hosts = _hosts(start, clock)
    stack.enter_context(hosts)
    agents = agents_of(start.addresses, folder, settings.jolokia, start.clients, stack)
    clients = agents.clients(start.clients)
    checked = preflight(agents, clients, require_all=settings.require_all, wall_s=clock.now_s)
    if settings.serve is not None:
        # Most runs need no web server, which is slow to import.
        from cli.record.load_server import LoadServer

        cluster = cluster_of(agents, clients)
        stack.enter_context(LoadServer(settings.serve, settings.clients, folder, cluster, start.redactor))
    planned = replace(_planned(start), nodes=checked.nodes, other_runs=checked.other_runs, clusters=checked.clusters)
    recorder = Recorder(
        planned,
        tuple(agents.journals),
        clients,
        folder,
        hosts,
        start.redactor,
        checked.memberships,
        checked.hosts,
        clock,
    )
    plan = live_plan(tuple(agents.journals), clients)
    shown = None if settings.quiet else plan

    def execute() -> CommandResult:
        with around(plan) if around else nullcontext():
            return run_command(hosts, folder, settings.mark_regex, shown, settings.duration, start.redactor)

    with _recoverable(folder):
        words = start.redactor.words(settings.command)
        result = recorder.run(words, execute, settings.cool_down, settings.duration)
        run = recorder.fetch()
    if any(node.problem and node.address for node in run.recorded):
        report_spools(run)
        note(f"the run is incomplete {run_folder.recovery_hint(folder)}")
    return result, run


def _hosts(start: _Start, clock: RunClock) -> LocalClientHost | RemoteClientHosts:
    """Return the machines on which the command runs."""
    command, name, folder = start.settings.command, start.name, start.folder
    if start.client_hosts:
        return RemoteClientHosts(start.client_hosts, command, name, folder, start.clients, start.redactor, clock)
    return LocalClientHost(command, name, folder)


def _planned(start: _Start) -> Run:
    """Return the run before its command starts, without nodes."""
    settings = start.settings
    return Run(
        start.name,
        start.begin_s,
        None,
        version("casstat"),
        dict(settings.tags),
        warm_up_s=settings.warm_up,
        conditions=tuple(RunCondition(condition.text) for condition in settings.fail_if),
        options=tuple(_given(settings)),
    )


def _given(settings: RecordSettings) -> Iterator[str]:
    """Yield the nodes and the options that a run's file states nowhere else, as words of a command line."""
    options: list[tuple[str, object]] = [
        *(("--seed", seed) for seed in settings.seeds),
        *(("--client", client) for client in settings.clients),
        *(("--redact", pattern.pattern) for pattern in settings.redact),
        ("--serve", settings.serve),
        ("--cool-down", f"{settings.cool_down:g}s" if settings.cool_down else None),
        ("--mark-regex", None if settings.mark_regex is None else os.fsdecode(settings.mark_regex.pattern)),
    ]
    options += [*given_options(settings.agent, AGENT), *given_options(settings.jolokia)]
    yield from (word for option, value in options if value is not None for word in (option, str(value)))
    yield from (["--require-all"] if settings.require_all else [])
    yield from settings.nodes


def _not_runnable(command: str) -> int:
    """Print why a command cannot be run; return the exit status that `env` would return."""
    shown = one_line(Redactor().words([command])[0])
    if "/" in command and Path(command).exists():
        note(f"{shown}: not executable")
        return NOT_EXECUTABLE
    note(f"{shown}: command not found")
    return NOT_FOUND


def _require_space(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < MIN_FREE_BYTES:
        raise CasstatError(f"{folder}: only {free >> 20} MiB free (hint: free at least {MIN_FREE_BYTES >> 20} MiB)")


def _tidy(folder: Path, *, is_new: bool) -> None:
    """Remove the journals of private agents, unless the run's file names journals that have not been fetched.

    If there is no run, also remove the recording of the client host, and the directory if this process created it
    (`is_new`).
    """
    if not is_run(folder):
        shutil.rmtree(folder / PRIVATE_FOLDER, ignore_errors=True)
        shutil.rmtree(folder / CLIENT_HOSTS_FOLDER, ignore_errors=True)
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
        return
    with suppress(OSError, RunFileError):
        if not any(node.journal for node in read_run(folder).nodes):
            shutil.rmtree(folder / PRIVATE_FOLDER, ignore_errors=True)


@contextmanager
def _recoverable(folder: Path) -> Iterator[None]:
    """On an error, print how to complete the run and what is still on remote hosts, if the run's file exists."""
    try:
        yield
    except BaseException as error:
        if not is_run(folder):
            raise
        with suppress(OSError, RunFileError):
            report_spools(read_run(folder))
        if isinstance(error, CasstatError):
            raise CasstatError(f"{error} {run_folder.recovery_hint(folder)}") from None
        note(f"the run is incomplete {run_folder.recovery_hint(folder)}")
        raise
