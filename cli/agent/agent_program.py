"""The agent's main loop: samples, records and exports one tick after another.

Sinks, the API and the search for a transport may block, so they run in threads of their own.
"""

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import fields, replace

import click

from cli.agent.agent_config import RELOADED, AgentSettings, TransportFinder
from cli.agent.agent_state import Agent, LastIdentity, options_of
from cli.agent.run_store import RunStore
from cli.agent.signals import FALLBACK_NODE, AgentClock, Notifier, Signals, StoppedError, end_with_input, listening
from cli.agent.sink_threads import check as check_sinks
from cli.errors import CasstatError, errors_as, note
from cli.line import node_selection
from cli.line.line_program import log_source
from cli.line.line_recorder import journal_limits, open_journal
from cli.line.node_selection import HOST_ONLY, Contact, LineSettings, TransportFactory, first_contact
from cli.run_folder import WORK_FOLDER, command_variable
from collector.model.clock import ticks
from collector.model.snapshot import Tick
from collector.node.host.busy_processes import BusyProcesses
from collector.node.node_sampler import NameOverrides, NodeSampler, Source
from collector.node.selection import Selection
from collector.printable import one_line
from collector.recording.writer import Journal
from exporters.api.server import check as check_server
from exporters.api.sockets import ListenError
from exporters.api.web_config import WebConfigError
from exporters.rate_limited_logger import RateLimitedLogger

# Python's thread switch interval; it is short so that sink and API threads do not delay the sampling thread.
SWITCH_S = 0.0005
SERVER_ERRORS = (ListenError, WebConfigError)


def run(settings: AgentSettings, reread: Callable[[], AgentSettings], environ: Mapping[str, str]) -> None:
    """Sample, record, serve and push until SIGTERM or Ctrl-C; `reread` reloads the settings.

    Raises click.UsageError and CasstatError for unusable settings.
    """
    sys.setswitchinterval(SWITCH_S)
    with listening() as signals, ExitStack() as stack:
        end_with_input(environ)
        program = _Program(settings, reread, environ, signals)
        threading.excepthook = program.log_thread_fault
        try:
            program.run(stack)
        except StoppedError:
            pass
        finally:
            signals.uninterruptible = True
            program.notifier.stopping()


class _Program:
    """The agent's main loop and the objects that it works on."""

    def __init__(
        self, settings: AgentSettings, reread: Callable[[], AgentSettings], environ: Mapping[str, str], signals: Signals
    ) -> None:
        self.settings = settings
        self._reread = reread
        self._signals = signals
        self.clock = AgentClock(signals, self._idle)
        self.log = RateLimitedLogger(note, self.clock.monotonic_s)
        self.notifier = Notifier(environ)
        self.folder = settings.journal_dir
        self._agent: Agent | None = None
        self._last_identity = LastIdentity(self.folder)
        self._fallback_node = environ.get(FALLBACK_NODE, "")
        self._selection = Selection(None, settings.line.keyspace, settings.line.table, settings.tables)
        self._extra: list[Source] = []

    def log_thread_fault(self, ended: threading.ExceptHookArgs) -> None:
        """Log that another thread ended because of a bug; sampling continues."""
        name = ended.thread.name if ended.thread else "a thread"
        self.log(f"{name}: internal error: {ended.exc_type.__name__}: {one_line(ended.exc_value or '')}")

    def run(self, stack: ExitStack) -> None:
        """Sample until a signal stops the agent. Raises StoppedError, CasstatError and click.UsageError."""
        settings = self.settings
        # Reject invalid settings before creating anything.
        _check(settings)
        log = log_source(settings.line, self.clock)
        if log is not None:
            stack.enter_context(closing(log))
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            runs = RunStore(self.folder, self.clock, self.log)
        except OSError as error:
            where = error.filename or self.folder
            raise CasstatError(f"cannot record to {where}: {error.strerror}") from None
        self._extra = [runs] if log is None else [runs, log]
        if settings.line.source == HOST_ONLY:
            # On a client host, the agent's journal and the directory of the run's command are in the same spool.
            variable = command_variable(self.folder.absolute().parent / WORK_FOLDER)
            self._extra.append(BusyProcesses(self.clock, variable))
        contact_result = first_contact(node_selection.transport_factories(settings.line, self.log), self._sampler_of)
        finder = TransportFinder(
            lambda: node_selection.transport_factories(settings.line, self.log),
            self._sampler_of,
            self.clock.monotonic_s,
        )
        points = ticks(self.clock, settings.interval, aligned=True)
        while True:
            self._log_contact(contact_result)
            with closing(contact_result.sampler) as sampler, closing(self._open_journal(sampler)) as journal:
                agent = self._agent
                if agent is None:
                    # Start serving only after locking the journal, because another agent may be using it.
                    agent = self._agent = stack.enter_context(
                        closing(self._start_agent(runs, answered=contact_result.answered))
                    )
                contact_result = self._follow(sampler, journal, agent, points, finder)

    def _start_agent(self, runs: RunStore, *, answered: bool) -> Agent:
        with errors_as(CasstatError, *SERVER_ERRORS):
            agent = Agent(self.settings, runs, self._last_identity, self.clock, self.log, has_answered=answered)
        host, port = agent.address
        # A UNIX socket has no port.
        self.log(f"serving {host}:{port}" if port else f"serving {host}")
        return agent

    def _sampler_of(self, _kind: str, factory: TransportFactory) -> NodeSampler:
        line = self.settings.line
        fallback_node = self._last_identity.identity.node or self._fallback_node
        overrides = NameOverrides(line.node, line.disk or "", line.net_interface or "", fallback_node)
        return NodeSampler(
            factory(self._selection, self.clock), self._selection, overrides, self.clock, extra=self._extra
        )

    def _log_contact(self, contact_result: Contact) -> None:
        if contact_result.kind == HOST_ONLY:
            self.log(f"sampling only this machine, recording to {self.folder}")
        elif contact_result.answered:
            self.log(
                f"sampling {contact_result.sampler.node} through {contact_result.kind}, recording to {self.folder}"
            )
        else:
            hint = "run 'casstat doctor'"
            self.log(f"no answer from Cassandra yet: {'; '.join(contact_result.failures)} (hint: {hint})")

    def _open_journal(self, sampler: NodeSampler) -> Journal:
        settings = self.settings
        limits = journal_limits(settings.journal_limit, settings.journal_sync)
        return open_journal(sampler, self.folder, limits, self._selection, settings.interval, self.log)

    def _follow(
        self, sampler: NodeSampler, journal: Journal, agent: Agent, points: Iterator[Tick], finder: TransportFinder
    ) -> Contact:
        """Sample until the node stops answering and another transport works; return the new contact.

        Raises StoppedError if a signal stops the agent.
        """
        stream = sampler.sample_stream()
        for snapshot in sampler.snapshots(points, self.settings.interval):
            # Defer signals until the tick has been recorded and passed on.
            self._signals.uninterruptible = True
            journal.append(snapshot)
            agent.tick(sampler, snapshot, stream.add(snapshot), journal)
            self.log.flush()
            self.notifier.alive(agent.status())
            next_contact = finder.tick(answered=agent.answers()) if sampler.kind else None
            self._signals.uninterruptible = False
            if self._signals.stopping:
                break
            if next_contact is not None:
                return next_contact
        raise StoppedError

    def _idle(self) -> None:
        """Reload the settings if SIGHUP has been received."""
        if not self._signals.hangup:
            return
        self._signals.hangup = False
        self.notifier.reloading()
        try:
            settings = self._reread()
            if self._agent is not None:
                self._agent.change(settings)
        except (CasstatError, click.ClickException) as error:
            reason = error.format_message() if isinstance(error, click.ClickException) else error
            self.log(f"settings not reloaded: {reason}")
            return
        later = [name for name in _changed(self.settings, settings) if name not in RELOADED]
        waiting = f"; changes to {', '.join(later)} require a restart" if later else ""
        self.log(f"settings reloaded{waiting}")
        self.settings = replace(self.settings, **{name: getattr(settings, name) for name in RELOADED})


def _check(settings: AgentSettings) -> None:
    """Raise click.UsageError or CasstatError for unusable settings."""
    if settings.line.table and not settings.line.keyspace:
        raise click.UsageError("--table needs --keyspace")
    check_sinks(settings.to)
    options_of(settings)
    with errors_as(CasstatError, *SERVER_ERRORS):
        check_server(settings.listen, settings.web_config_file)


def _changed(before: AgentSettings, after: AgentSettings) -> list[str]:
    """Return the names of the settings that differ."""
    names = [option_field.name for option_field in fields(AgentSettings) if option_field.name != "line"]
    changed = [name for name in names if getattr(before, name) != getattr(after, name)]
    shared = [option_field.name for option_field in fields(LineSettings)]
    return changed + [name for name in shared if getattr(before.line, name) != getattr(after.line, name)]
