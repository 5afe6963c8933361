"""What the agent knows of itself, for everybody who asks: it takes every tick, and hands it on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from prometheus_client import CollectorRegistry

from cli.agent.agent_settings import AgentSettings
from cli.agent.availability import Availability
from cli.agent.last_identity import LastIdentity
from cli.agent.run_store import RunStore
from cli.agent.sink_threads import Sinks
from collector.host.host_source import identity_of
from collector.journal.summary import size_of
from collector.journal.writer import Journal
from collector.model.clock import Clock
from collector.model.sample import Sample
from collector.model.snapshot import Scrape, Snapshot
from collector.sampling.node_sampler import NodeSampler
from exporters.api.app import build
from exporters.api.server import Server
from exporters.prometheus.agent_health import AgentHealth, JournalHealth
from exporters.prometheus.page import Page
from exporters.prometheus.rendering import Options
from exporters.prometheus.upper_bounds import DEFAULT_S, UpperBounds
from exporters.recent_ticks import RecentTicks

# A tick that is so much later than it should be will not come any more; in ticks, and at least so many seconds.
STALLED_TICKS, STALLED_S = 3, 10.0
# A node that answers at its own pace may take so long.
PACED_S = 120.0


class Agent:
    """The agent as its API and its parts see it: it is what `exporters.api.agent_api` wants."""

    def __init__(
        self,
        settings: AgentSettings,
        runs: RunStore,
        known: LastIdentity,
        clock: Clock,
        say: Callable[[str], None],
        *,
        answered: bool,
    ) -> None:
        """Begin to serve; `answered` is whether the first contact succeeded. Raises ListenError and WebConfigError."""
        self.recent = RecentTicks()
        self.journal = settings.journal_dir
        self._settings = settings
        self._runs = runs
        self._known = known
        self._clock = clock
        self._sinks = Sinks(settings.journal_dir, self.recent, say)
        self._page = Page(
            options_of(settings), CollectorRegistry(), self._health, say, clock.monotonic_s, settings.interval
        )
        self._began_s = clock.wall_s()
        self._ticked_s = clock.monotonic_s()
        self._answered_s: float | None = None
        self._availability = Availability(say, clock.monotonic_s, answered=answered)
        self._identity = replace(known.identity, node=settings.line.node or known.identity.node)
        self._problems: dict[str, str] = {}
        self._node_problem = ""
        self._watch: NodeSampler | None = None
        self._written: Journal | None = None
        # Of the journals before: one is begun anew whenever the node is asked in another way.
        self._before = JournalHealth()
        self._server = Server(build(self), settings.listen, settings.web_config_file, say, names=settings.allow_host)

    @property
    def address(self) -> tuple[str, int]:
        """Where it is reached."""
        return self._server.address

    def tick(self, watch: NodeSampler, snapshot: Snapshot, sample: Sample | None, journal: Journal) -> None:
        """Take a tick."""
        if self._written is not None and journal is not self._written:
            self._before = _sum(self._before, self._written)
            self.recent.clear()
        first = self._written is None
        self._watch, self._written = watch, journal
        self._ticked_s = self._clock.monotonic_s()
        self._take_node([scrape for scrape in snapshot.scrapes if scrape.source in watch.node_sources])
        self._identity = self._identity.after(snapshot)
        if watch.facts.address:
            self._known.update(replace(self._identity, node=watch.facts.address))
        self._page.add(snapshot, self._identity, sample.events if sample else ())
        self._problems = {scrape.source: scrape.problem for scrape in snapshot.scrapes if scrape.problem}
        self.recent.add(snapshot.tick, self._identity, sample, journal.position)
        if first:
            # Only now there is a place in the journal to begin at.
            self._sinks.change(self._settings.to, journal.position, self._identity)

    def _take_node(self, scrapes: Sequence[Scrape]) -> None:
        """Take what was read of the node in a tick."""
        problems = [f"{scrape.source}: {scrape.problem}" for scrape in scrapes if scrape.problem]
        if any(scrape.values for scrape in scrapes):
            self._answered_s, self._node_problem = self._ticked_s, ""
        elif problems:
            self._node_problem = problems[0]
        origin = next((scrape.origin for scrape in scrapes if scrape.origin), "")
        self._availability.tick(answers=self.answers(), problem=self.unready(), origin=origin)

    def change(self, settings: AgentSettings) -> None:
        """Take other settings. Raises CasstatError, and then all is as before."""
        if self._written is not None:
            self._sinks.change(settings.to, self._written.position, self._identity)
        self._page.change(options_of(settings))
        self._settings = settings

    def close(self) -> None:
        """End what goes on beside the ticks."""
        self._server.stop()
        self._sinks.close()

    def answers(self) -> bool:
        """Return whether the node answers, as far as its pace tells."""
        paced = self._watch is not None and self._watch.paced
        patience_s = max(STALLED_TICKS * self._settings.interval, PACED_S if paced else 0.0)
        return self._answered_s is not None and self._clock.monotonic_s() - self._answered_s <= patience_s

    def status(self) -> str:
        """Return in a line how things are."""
        down = [sink.name for sink in self._sinks.health() if not sink.up]
        node = self._watch.node if self._watch else "-"
        return f"{node} {'answers' if self.answers() else 'does not answer'}; sinks down: {', '.join(down) or 'none'}"

    def metrics(self, *, openmetrics: bool, compressed: bool) -> bytes:
        """Return the exposition of the last tick, gzipped if `compressed`."""
        return self._page.get(openmetrics=openmetrics, compressed=compressed)

    def node(self) -> Mapping[str, Any]:
        """Return who the node is, how it is sampled, and with what success, as JSON can say it."""
        moment, watch, written = self.recent.last, self._watch, self._written
        host = watch.host if watch else None
        machine, network = identity_of(host)
        disk, interface = watch.devices if watch else ("", "")
        return {
            **{name: getattr(self._identity, name) or None for name in ("node", "cluster", "dc", "rack")},
            "casstat": version("casstat"),
            "address": watch.facts.address if watch else "",
            "peers": list(watch.facts.peers) if watch else [],
            "machine": machine,
            "network": network,
            "disk": disk,
            "interface": interface,
            "source": watch.kind if watch else None,
            "answers": self.answers(),
            "interval_s": self._settings.interval,
            "began_s": self._began_s,
            "tick_s": moment.tick.time_s if moment else None,
            "problems": self._problems,
            "journal": {"lost_ticks": self._before.lost_ticks + (written.lost if written else 0)},
            "sinks": [
                {"name": each.name, "up": each.up, "lag_s": each.lag_s, "why": each.why}
                for each in self._sinks.health()
            ],
        }

    def unready(self) -> str:
        """Return why the node does not answer; "" when it does."""
        return "" if self.answers() else self._node_problem or "the node has not answered yet"

    def unhealthy(self) -> str:
        """Return what is wrong with the agent itself; "" for nothing."""
        silent_s = self._clock.monotonic_s() - self._ticked_s
        if silent_s > max(STALLED_TICKS * self._settings.interval, STALLED_S):
            return f"no tick for {silent_s:.0f} s"
        return ""

    def runs(self) -> Sequence[Mapping[str, Any]]:
        """Return the runs that were begun, the oldest first."""
        return self._runs.every()

    def begin_run(self, name: str) -> Mapping[str, Any]:
        """Begin a run now and return it. Raises OSError and ValueError."""
        return self._runs.begin(name)

    def mark_run(self, run: str, text: str) -> Mapping[str, Any]:
        """Add a mark to a run now and return the run. Raises KeyError, ValueError and OSError."""
        return self._runs.mark(run, text)

    def end_run(self, run: str) -> Mapping[str, Any]:
        """End a run now and return it. Raises KeyError, ValueError and OSError."""
        return self._runs.end(run)

    def _health(self) -> AgentHealth:
        journal = self._before if self._written is None else _sum(self._before, self._written)
        whole = JournalHealth(journal.lost_ticks, journal.removed_files, size_of(self.journal))
        machine, network = identity_of(self._watch.host if self._watch else None)
        return AgentHealth(version("casstat"), whole, self._sinks.health(), self._runs.times(), machine, network)


def options_of(settings: AgentSettings) -> Options:
    """Return how Prometheus is served."""
    return Options(UpperBounds(settings.buckets or DEFAULT_S), settings.series_limit, settings.node_metrics)


def _sum(before: JournalHealth, journal: Journal) -> JournalHealth:
    return JournalHealth(before.lost_ticks + journal.lost, before.removed_files + journal.removed)
