"""The agent's state: it is updated on every tick and read by the API, Prometheus and the sinks."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from cli.agent.agent_config import AgentSettings
from cli.agent.run_store import RunStore
from cli.agent.sink_threads import Sinks
from collector.file_access import replace_file
from collector.merge.aggregation import placement_of
from collector.model.clock import Clock
from collector.model.snapshot import NOWHERE, Identity, Sample, Scrape, Snapshot, SourceError
from collector.node.host.host_source import identity_of
from collector.node.host.kernel_files import read_text
from collector.node.node_sampler import NodeSampler
from collector.recording.journal_files import size_of
from collector.recording.writer import Journal
from exporters.api.app import build
from exporters.api.server import Server
from exporters.metrics_page.metric_family import DEFAULT_S, UpperBounds
from exporters.metrics_page.page import Page
from exporters.metrics_page.rendering import Options
from exporters.metrics_page.self_metrics import AgentHealth, JournalHealth
from exporters.recent_ticks import RecentTicks
from exporters.sinks.shipping.shipper import Plan, journal_opener

# The directory for checkpoints and dead-letter files, in the journal's directory.
SINKS_FOLDER = "sinks"
# The agent is unhealthy if the last tick is more than STALLED_TICKS intervals and more than STALLED_S seconds old.
STALLED_TICKS, STALLED_S = 3, 10.0
# A transport that sets its own pace, such as nodetool, may take this long to respond.
PACED_S = 120.0
# If the first contact has succeeded, wait this long for the first reading before reporting the node as unavailable.
FIRST_READING_S = 120.0
FILE = "identity.json"
MAX_CHARS = 255


class Availability:
    """Detects and logs changes in the node's availability; used only by the sampling thread."""

    def __init__(self, log: Callable[[str], None], monotonic_s: Callable[[], float], *, answered: bool) -> None:
        """Report changes to `log`; `answered` is true if the first contact succeeded."""
        self._log = log
        self._monotonic_s = monotonic_s
        self._since_s = monotonic_s()
        # None if the first contact succeeded and nothing has been read since.
        self._answers = None if answered else False
        self._origin = ""

    def tick(self, *, answers: bool, problem: str, origin: str) -> None:
        """Process a tick.

        problem  the reason why the node is not answering.
        origin   the origin of the node's counters, or "" if it is unknown.
        """
        restarted = bool(origin and self._origin) and origin != self._origin
        self._origin = origin or self._origin
        if answers == self._answers:
            return
        now_s = self._monotonic_s()
        lasted_s = now_s - self._since_s
        if not answers and self._answers is None and lasted_s < FIRST_READING_S:
            return
        if not answers:
            self._log(f"Cassandra stopped answering, having answered for {lasted_s:.0f} s: {problem}")
        elif self._answers is False:
            restart = ": it restarted" if restarted else ""
            self._log(f"Cassandra is answering, after {lasted_s:.0f} s without a response{restart}")
        self._answers, self._since_s = answers, now_s


class LastIdentity:
    """The node's last identity, stored in a file beside the journal; empty if the file is missing or malformed."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self.identity = _loaded(self._path)

    def update(self, identity: Identity) -> None:
        """Save the identity that the node now reports; after a write error, the next call tries again."""
        if identity == self.identity:
            return
        with suppress(OSError):
            replace_file(self._path, json.dumps(asdict(identity)).encode())
            self.identity = identity


def _loaded(path: Path) -> Identity:
    try:
        content = json.loads(read_text(path))
        identity = Identity(**{field.name: content[field.name] for field in fields(Identity)})
    except (SourceError, ValueError, RecursionError, TypeError, KeyError):
        return Identity()
    texts = asdict(identity).values()
    usable = all(isinstance(text, str) and text.isprintable() and len(text) <= MAX_CHARS for text in texts)
    return identity if usable else Identity()


class Agent:
    """A running agent's state; implements `exporters.api.endpoint.AgentApi`."""

    def __init__(
        self,
        settings: AgentSettings,
        runs: RunStore,
        last_identity: LastIdentity,
        clock: Clock,
        log: Callable[[str], None],
        *,
        has_answered: bool,
    ) -> None:
        """Start serving; `has_answered` is true if the first contact succeeded.

        Raises ListenError and WebConfigError.
        """
        self.recent = RecentTicks()
        self.journal = settings.journal_dir
        self._settings = settings
        self.runs = runs
        self._last_identity = last_identity
        self._clock = clock
        plan = Plan(
            journal_opener(settings.journal_dir),
            state_folder=settings.journal_dir / SINKS_FOLDER,
            recent=self.recent,
            live=lambda: self._page.live_families(),
        )
        self._sinks = Sinks(plan, log, journal=settings.journal_dir)
        self._page = Page(
            options_of(settings),
            CollectorRegistry(),
            self._health,
            log,
            clock.monotonic_s,
            settings.interval,
            clock.wall_s,
        )
        self._began_s = clock.wall_s()
        self._last_tick_s = clock.monotonic_s()
        self._answered_s: float | None = None
        self._availability = Availability(log, clock.monotonic_s, answered=has_answered)
        self._identity = replace(last_identity.identity, node=settings.line.node or last_identity.identity.node)
        self._problems: dict[str, str] = {}
        self._node_problem = ""
        self._sampler: NodeSampler | None = None
        self._journal_writer: Journal | None = None
        # Totals of the earlier journals; every change of transport starts a new journal.
        self._earlier_journals = JournalHealth()
        self._server = Server(
            build(self),
            settings.listen,
            settings.web_config_file,
            log,
            names=settings.allow_host,
            anonymous_reads=settings.allow_anonymous_reads,
        )
        if self._server.is_open:
            allowed = "everything" if settings.allow_anonymous_reads else "/metrics, but no recordings"
            hint = "configure passwords or client certificates with --web-config-file"
            log(f"{settings.listen}: other machines can read {allowed} without credentials (hint: {hint})")

    @property
    def address(self) -> tuple[str, int]:
        """The API's host and port; for a UNIX socket, unix:PATH and 0."""
        return self._server.address

    def tick(self, sampler: NodeSampler, snapshot: Snapshot, sample: Sample | None, journal: Journal) -> None:
        """Update the state with a tick, and pass the tick to the API, /metrics and the sinks."""
        if self._journal_writer is not None and journal is not self._journal_writer:
            self._earlier_journals = _sum(self._earlier_journals, self._journal_writer)
            self.recent.clear()
        first = self._journal_writer is None
        self._sampler, self._journal_writer = sampler, journal
        self._last_tick_s = self._clock.monotonic_s()
        self._take_node([scrape for scrape in snapshot.scrapes if scrape.source in sampler.node_sources])
        self._identity = self._identity.after(snapshot)
        if sampler.facts.address:
            self._last_identity.update(replace(self._identity, node=sampler.facts.address))
        self._page.add(snapshot, self._identity, sample.events if sample else ())
        self._problems = {scrape.source: scrape.problem for scrape in snapshot.scrapes if scrape.problem}
        where = placement_of(journal.header) if journal.header else NOWHERE
        self.recent.add(snapshot, self._identity, where, sample, journal.position)
        if self.runs.has_ended:
            self.runs.has_ended = False
            self._sinks.upload_now()
        if first:
            # The journal position is known only after the first tick.
            self._sinks.change(self._settings.to, journal.position, self._identity, options_of(self._settings))

    def _take_node(self, scrapes: Sequence[Scrape]) -> None:
        """Update the node's availability from the tick's scrapes of the node."""
        problems = [f"{scrape.source}: {scrape.problem}" for scrape in scrapes if scrape.problem]
        if any(scrape.values for scrape in scrapes):
            self._answered_s, self._node_problem = self._last_tick_s, ""
        elif problems:
            self._node_problem = problems[0]
        origin = next((scrape.origin for scrape in scrapes if scrape.origin), "")
        self._availability.tick(answers=self.answers(), problem=self.unready(), origin=origin)

    def change(self, settings: AgentSettings) -> None:
        """Apply changed settings. If CasstatError is raised, nothing has changed."""
        if self._journal_writer is not None:
            position = self._journal_writer.position
            self._sinks.change(settings.to, position, self._identity, options_of(settings))
        self._page.change(options_of(settings))
        self._settings = settings

    def close(self) -> None:
        """Stop the API and the sinks."""
        self._server.stop()
        self._sinks.close()

    def answers(self) -> bool:
        """Return whether the node has answered recently; the time allowed depends on the interval and the transport."""
        paced = self._sampler is not None and self._sampler.paced
        patience_s = max(STALLED_TICKS * self._settings.interval, PACED_S if paced else 0.0)
        return self._answered_s is not None and self._clock.monotonic_s() - self._answered_s <= patience_s

    def status(self) -> str:
        """Return the agent's status as one line."""
        down = [sink.name for sink in self._sinks.health() if not sink.up]
        node = self._sampler.node if self._sampler else "-"
        state = "is answering" if self.answers() else "is not answering"
        return f"{node} {state}; sinks down: {', '.join(down) or 'none'}"

    def metrics(self, *, openmetrics: bool, compressed: bool) -> bytes:
        """Return the exposition of the last tick, compressed with gzip if `compressed`."""
        return self._page.get(openmetrics=openmetrics, compressed=compressed)

    def node(self) -> Mapping[str, Any]:
        """Return the node's identity, transport and state as values that JSON can represent."""
        last, sampler = self.recent.last, self._sampler
        host = sampler.host if sampler else None
        machine, network = identity_of(host)
        disk, interface = sampler.devices if sampler else ("", "")
        return {
            **{name: getattr(self._identity, name) or None for name in ("node", "cluster", "dc", "rack")},
            "casstat": version("casstat"),
            "address": sampler.facts.address if sampler else "",
            "peers": list(sampler.facts.peers) if sampler else [],
            "machine": machine,
            "network": network,
            "disk": disk,
            "interface": interface,
            "source": sampler.kind if sampler else None,
            "answers": self.answers(),
            "interval_s": self._settings.interval,
            "began_s": self._began_s,
            "tick_s": last.tick.time_s if last else None,
            "problems": self._problems,
            "journal": {"lost_ticks": _sum(self._earlier_journals, self._journal_writer).lost_ticks},
            "sinks": [
                {"name": sink.name, "up": sink.up, "lag_s": sink.lag_s, "why": sink.reason}
                for sink in self._sinks.health()
            ],
        }

    def unready(self) -> str:
        """Return the reason why the node is not answering, or "" if it is."""
        return "" if self.answers() else self._node_problem or "no recent metrics from the node"

    def unhealthy(self) -> str:
        """Return the reason why the agent itself is unhealthy, or "" if it is healthy."""
        silent_s = self._clock.monotonic_s() - self._last_tick_s
        if silent_s > max(STALLED_TICKS * self._settings.interval, STALLED_S):
            return f"no tick for {silent_s:.0f} s"
        return ""

    def _health(self) -> AgentHealth:
        journal = _sum(self._earlier_journals, self._journal_writer)
        total = JournalHealth(journal.lost_ticks, journal.removed_files, size_of(self.journal))
        machine, network = identity_of(self._sampler.host if self._sampler else None)
        return AgentHealth(version("casstat"), total, self._sinks.health(), self.runs.times(), machine, network)


def options_of(settings: AgentSettings) -> Options:
    """Return the options for rendering /metrics."""
    return Options(UpperBounds(settings.buckets or DEFAULT_S), settings.series_limit, settings.node_metrics)


def _sum(before: JournalHealth, journal: Journal | None) -> JournalHealth:
    if journal is None:
        return before
    return JournalHealth(before.lost_ticks + journal.lost, before.removed_files + journal.removed)
