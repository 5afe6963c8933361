"""The agent at work: one tick after the other until it is told to stop; what hangs goes on in threads beside it."""

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import fields, replace

import click

from cli.agent.agent_settings import RELOADED, AgentSettings
from cli.agent.agent_state import Agent, options_of
from cli.agent.last_identity import LastIdentity
from cli.agent.run_store import RunStore
from cli.agent.signals import AgentClock, Signals, StoppedError, listening
from cli.agent.sink_threads import check as check_sinks
from cli.agent.systemd_notify import Notifier
from cli.agent.transport_finder import TransportFinder
from cli.errors import CasstatError, note
from cli.line.line_program import log_source
from cli.line.line_recorder import journal_limits, open_journal
from cli.line.line_settings import LineSettings
from cli.node.transports import Contact, TransportFactory, first_contact, transport_factories
from collector.journal.writer import Journal
from collector.model.clock import ticks
from collector.model.snapshot import Tick
from collector.printable import one_line
from collector.sampling.node_sampler import NameOverrides, NodeSampler
from collector.sampling.selection import Selection
from collector.sampling.source_reader import Source
from exporters.api.listen_address import ListenError
from exporters.api.server import check as check_server
from exporters.api.web_values import WebConfigError
from exporters.rate_limited_logger import RateLimitedLogger

# Threads of sinks and of the API must not keep a tick waiting: so long, at most, one of them goes on.
SWITCH_S = 0.0005


def run(settings: AgentSettings, again: Callable[[], AgentSettings], environ: Mapping[str, str]) -> None:
    """Sample, record, serve and push until SIGTERM or Ctrl-C; `again` reads the settings again.

    Raises click.UsageError and CasstatError for what cannot be done.
    """
    sys.setswitchinterval(SWITCH_S)
    with listening() as signals, ExitStack() as stack:
        program = _Program(settings, again, environ, signals)
        threading.excepthook = program.fault
        try:
            program.run(stack)
        except StoppedError:
            pass
        finally:
            signals.sheltered = True
            program.notifier.stopping()


class _Program:
    """What the parts of one run of the agent share."""

    def __init__(
        self,
        settings: AgentSettings,
        again: Callable[[], AgentSettings],
        environ: Mapping[str, str],
        signals: Signals,
    ) -> None:
        self.settings = settings
        self._again = again
        self._signals = signals
        self.clock = AgentClock(signals, self._idle)
        self.log = RateLimitedLogger(note, self.clock.monotonic_s)
        self.notifier = Notifier(environ)
        self.folder = settings.journal_dir
        self._agent: Agent | None = None
        self._known = LastIdentity(self.folder)
        self._selection = Selection(None, settings.line.keyspace, settings.line.table, settings.tables)
        self._extra: list[Source] = []

    def fault(self, ended: threading.ExceptHookArgs) -> None:
        """Say that a thread beside the ticks ended by a fault of casstat's own: sampling goes on."""
        name = ended.thread.name if ended.thread else "a thread"
        self.log(f"{name}: a fault of casstat: {ended.exc_type.__name__}: {one_line(ended.exc_value or '')}")

    def run(self, stack: ExitStack) -> None:
        """Go on until StoppedError."""
        settings = self.settings
        # Invalid settings are rejected before anything is created.
        _check(settings)
        log = log_source(settings.line, self.clock)
        if log is not None:
            stack.enter_context(closing(log))
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            runs = RunStore(self.folder, self.clock, self.log)
        except OSError as error:
            where = error.filename or self.folder
            raise CasstatError(f"{where}: {error.strerror}: nothing can be recorded there") from None
        self._extra = [runs] if log is None else [runs, log]
        made = first_contact(transport_factories(settings.line, self.log), self._watch_of)
        finder = TransportFinder(
            lambda: transport_factories(settings.line, self.log), self._watch_of, self.clock.monotonic_s
        )
        points = ticks(self.clock, settings.interval, aligned=True)
        while True:
            self._say_how(made)
            with closing(made.sampler) as watch, closing(self._open_journal(watch)) as journal:
                agent = self._agent
                if agent is None:
                    # Not before the journal is ours: another agent may be there.
                    agent = self._agent = stack.enter_context(closing(self._serving(runs, answered=made.answered)))
                made = self._follow(watch, journal, agent, points, finder)

    def _serving(self, runs: RunStore, *, answered: bool) -> Agent:
        with _server_errors():
            agent = Agent(self.settings, runs, self._known, self.clock, self.log, answered=answered)
        host, port = agent.address
        self.log(f"serving {host}:{port}")
        return agent

    def _watch_of(self, _kind: str, way: TransportFactory) -> NodeSampler:
        line = self.settings.line
        overrides = NameOverrides(line.node, line.disk or "", line.net_interface or "", self._known.identity.node)
        return NodeSampler(way(self._selection, self.clock), self._selection, overrides, self.clock, extra=self._extra)

    def _say_how(self, made: Contact) -> None:
        if made.answered:
            self.log(f"sampling {made.sampler.node} through {made.kind}, recording into {self.folder}")
        else:
            mend = "'casstat doctor' says what mends it"
            self.log(f"no answer from Cassandra (yet): {'; '.join(made.failures)} ({mend})")

    def _open_journal(self, watch: NodeSampler) -> Journal:
        settings = self.settings
        limits = journal_limits(settings.journal_limit, settings.journal_sync)
        return open_journal(watch, self.folder, limits, self._selection, settings.interval, self.log)

    def _follow(
        self, watch: NodeSampler, journal: Journal, agent: Agent, points: Iterator[Tick], finder: TransportFinder
    ) -> Contact:
        """Sample until there is another way to a node that does not answer; return that."""
        stream = watch.sample_stream()
        for snapshot in watch.snapshots(points, self.settings.interval):
            # Signals wait until the tick is recorded and handed on.
            self._signals.sheltered = True
            journal.append(snapshot)
            agent.tick(watch, snapshot, stream.add(snapshot), journal)
            self.log.flush()
            self.notifier.alive(agent.status())
            found = finder.tick(answered=agent.answers())
            self._signals.sheltered = False
            if self._signals.stopping:
                break
            if found is not None:
                return found
        raise StoppedError

    def _idle(self) -> None:
        """Read the settings again when that is wanted."""
        if not self._signals.hangup:
            return
        self._signals.hangup = False
        self.notifier.reloading()
        try:
            settings = self._again()
        except (CasstatError, click.ClickException) as error:
            why = error.format_message() if isinstance(error, click.ClickException) else error
            self.log(f"the settings stay as they were: {why}")
            return
        later = [name for name in _changed(self.settings, settings) if name not in RELOADED]
        try:
            if self._agent is not None:
                self._agent.change(settings)
        except CasstatError as error:
            self.log(f"the settings stay as they were: {error}")
            return
        waiting = f"; {', '.join(later)} will only change with the next start" if later else ""
        self.log(f"the settings are read again{waiting}")
        self.settings = replace(self.settings, **{name: getattr(settings, name) for name in RELOADED})


def _check(settings: AgentSettings) -> None:
    """Raise click.UsageError or CasstatError for settings that cannot be used."""
    if settings.line.table and not settings.line.keyspace:
        raise click.UsageError("--table needs --keyspace")
    check_sinks(settings.to)
    options_of(settings)
    with _server_errors():
        check_server(settings.listen, settings.web_config_file)


@contextmanager
def _server_errors() -> Iterator[None]:
    try:
        yield
    except (ListenError, WebConfigError) as error:
        raise CasstatError(str(error)) from None


def _changed(before: AgentSettings, after: AgentSettings) -> list[str]:
    """Return the names of the settings that differ."""
    found = [each.name for each in fields(AgentSettings) if each.name != "line"]
    changed = [name for name in found if getattr(before, name) != getattr(after, name)]
    shared = [each.name for each in fields(LineSettings)]
    return changed + [name for name in shared if getattr(before.line, name) != getattr(after.line, name)]
