"""The program behind `casstat simulate`: simulates the ticks of all nodes, and prints what stores and clients took.

The main thread simulates; each sink of each node has a thread of its own, and so has the server. If the process is too
slow, ticks are missed as in an agent that is too slow, so that its own limit shows as missing ticks.
"""

import json
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from importlib.metadata import version

from cli.agent.signals import AgentClock, Signals, StoppedError, listening
from cli.agent.sink_threads import check as check_sinks
from cli.errors import CasstatError, echo, note
from cli.parameters.access_options import warn_of_sink
from cli.simulate import interval_figures
from cli.simulate.interval_figures import Figures, Totals, figures, store_totals
from cli.simulate.simulated_agent import ComputeGate, NodeHistory, SimulatedAgent
from cli.top.self_cost import resident_mib
from collector.model.clock import ticks
from collector.model.snapshot import Tick
from collector.printable import count_text
from collector.simulation.simulated_cluster import header_of, simulated_cluster
from exporters.api.app import TARGETS, pages_app
from exporters.api.server import Server
from exporters.api.sockets import ListenError, with_default_host
from exporters.rate_limited_logger import RateLimitedLogger
from exporters.sinks.parts.all_sinks import sink_of

# The time that requests in progress have to finish at the end.
PATIENCE_S = 2.0
# Files of the process other than the connections to stores, and connections of clients besides one for each node.
OTHER_FILES, OTHER_CONNECTIONS = 100, 100
HEADER_EVERY = 20
# The first ticks fill caches and take several times as long as later ones, so that ticks missed meanwhile are not due.
WARM_UP_TICKS = 2
# Pages are rendered one after another; above this share of the time, clients wait for them.
MAX_SERVING_PCT = 80.0
IDLE_POLL_S = 0.005
# Python's thread switch interval; it is short, because each of hundreds of threads needs the interpreter several times
# a second.
SWITCH_S = 0.0005


@dataclass(frozen=True)
class SimulateSettings:
    """The options of `casstat simulate`; see `casstat simulate --help`."""

    nodes: int
    tables: int
    interval_s: float
    urls: tuple[str, ...]
    listen: str | None
    duration_s: float | None
    seed: int
    cluster: str
    output: str


def run(settings: SimulateSettings) -> None:
    """Simulate until the duration has passed, or until Ctrl-C or SIGTERM. Raises CasstatError."""
    check_sinks(settings.urls)
    _raise_file_limit(settings)
    sys.setswitchinterval(SWITCH_S)
    with listening() as signals, ExitStack() as stack:
        program = _Program(settings, signals)
        stack.callback(program.close)
        if settings.listen is not None:
            stack.enter_context(_serving(settings.listen, program.agents))
        try:
            program.start()
            program.simulate()
        except StoppedError:
            pass
        finally:
            signals.uninterruptible = True
            program.end()


class _Program:
    """All agents, and the totals of the last row."""

    def __init__(self, settings: SimulateSettings, signals: Signals) -> None:
        self._settings = settings
        self._signals = signals
        self._clock = AgentClock(signals, lambda: self._log.flush())
        self._log = RateLimitedLogger(note, self._clock.monotonic_s)
        self._serves = settings.listen is not None
        self._names = [_name(url) for url in settings.urls]
        self._ticks: list[Tick] = []
        self._achieved = self._due = self._rows = 0
        self._gate = ComputeGate()
        self._closed = False
        session = f"{time.time():.3f}"
        nodes = simulated_cluster(settings.nodes, settings.tables, seed=settings.seed, cluster=settings.cluster)
        self.agents = [
            SimulatedAgent(
                NodeHistory(node, header_of(node, settings.interval_s, session, version("casstat")), self._ticks),
                self._gate,
                self._logged,
                self._clock.wall_s,
                serves=self._serves,
            )
            for node in nodes
        ]
        self._begin = self._last = self._totals(self._clock.wall_s())

    def start(self) -> None:
        """Start the sinks of all nodes. Raises CasstatError."""
        try:
            for agent in self.agents:
                agent.start(self._settings.urls)
        except RuntimeError:
            count = len(self.agents) * len(self._settings.urls)
            raise CasstatError(f"cannot start {count} threads, one for each node and URL (hint: fewer nodes)") from None

    def simulate(self) -> None:
        """Simulate and print a row after each interval, until the duration has passed. Raises StoppedError."""
        settings = self._settings
        for tick in ticks(self._clock, settings.interval_s, aligned=True):
            if not self._ticks:
                self._begin = self._last = self._totals(tick.time_s)
            else:
                self._count_missed(tick)
                self._print(tick.time_s)
                if settings.duration_s is not None and tick.time_s >= self._begin.time_s + settings.duration_s:
                    return
            self._due += settings.nodes
            self._ticks.append(tick)
            for agent in self.agents:
                agent.tick()
                self._achieved += 1
                if self._signals.stopping:
                    raise StoppedError
            # Without this wait, a process that is too slow would fall behind its stores, as if these were too slow.
            while not self._gate.is_idle():
                self._clock.sleep(IDLE_POLL_S)

    def end(self) -> None:
        """Stop the sinks, and print the summary."""
        self.close()
        if self._rows == 0:
            note(f"nothing measured yet: the first row takes at least one interval ({self._settings.interval_s:g} s)")
            return
        end = self._totals(self._clock.wall_s())
        self._log.flush()
        if self._settings.output == "json":
            whole = figures(self._begin, end)
            echo(json.dumps({"summary": {**whole.as_json(), "resident_mib": resident_mib()}}))
            return
        lines = interval_figures.summary(
            self._begin, end, resident_mib(), nodes=self._settings.nodes, serves=self._serves
        )
        for line in lines:
            echo(line)

    def close(self) -> None:
        """Stop all sinks together, and wait for them; do nothing if they are stopped already."""
        if self._closed:
            return
        self._closed = True
        for agent in self.agents:
            agent.stop()
        ends_s = time.monotonic() + PATIENCE_S
        for agent in self.agents:
            agent.close(max(ends_s - time.monotonic(), 0.0))

    def _totals(self, time_s: float) -> Totals:
        sinks = [agent.sinks() for agent in self.agents]
        return Totals(
            time_s,
            time.monotonic(),
            time.process_time(),
            self._achieved,
            self._due,
            sum(agent.is_silent for agent in self.agents),
            sum(agent.pages for agent in self.agents),
            sum(agent.series for agent in self.agents),
            sum(agent.serving_s for agent in self.agents),
            tuple(map(store_totals, zip(*sinks, strict=True))),
        )

    def _print(self, time_s: float) -> None:
        totals = self._totals(time_s)
        interval: Figures = figures(self._last, totals)
        self._last = totals
        self._check_serving(interval)
        self._rows += 1
        if self._settings.output == "json":
            echo(json.dumps(interval.as_json()))
            return
        if self._rows % HEADER_EVERY == 1:
            for line in interval_figures.header(self._names, serves=self._serves):
                echo(line)
        echo(interval_figures.row(interval, serves=self._serves))

    def _count_missed(self, tick: Tick) -> None:
        if not tick.missed or len(self._ticks) <= WARM_UP_TICKS:
            return
        self._due += tick.missed * self._settings.nodes
        self._log(
            f"this process does not keep up with {count_text(self._settings.nodes, 'node')} every "
            f"{self._settings.interval_s:g} s and misses ticks: the figures show its own limit (hint: use fewer nodes, "
            "a longer interval, or several processes with different --cluster)",
            kind="missed",
        )

    def _check_serving(self, interval: Figures) -> None:
        if interval.serving_pct > MAX_SERVING_PCT:
            self._log(
                "this process renders pages all the time: slow and failed scrapes show its own limit (hint: use fewer "
                "nodes, a longer scrape interval, or several processes with different --cluster)",
                kind="serving",
            )

    def _logged(self, text: str) -> None:
        """Log a message of a sink or page once for all nodes; numbers may differ."""
        self._log(text, kind="".join(letter for letter in text if not letter.isdigit()))


@contextmanager
def _serving(listen: str, agents: Sequence[SimulatedAgent]) -> Iterator[None]:
    """Serve the pages of all agents on [HOST:]PORT within the block. Raises CasstatError."""
    app = pages_app({agent.name: agent for agent in agents})
    try:
        server = Server(app, with_default_host(listen), None, note, len(agents) + OTHER_CONNECTIONS)
    except ListenError as error:
        raise CasstatError(f"--listen {error}") from None
    note(f"serving the list of all pages on {server.url}{TARGETS}")
    try:
        yield
    finally:
        server.stop()


def _name(url: str) -> str:
    """Return the name of a sink, which contains no secrets."""
    with closing(sink_of(url)) as sink:
        warn_of_sink(url)
        return sink.name


def _raise_file_limit(settings: SimulateSettings) -> None:
    """Allow as many open files as there are connections. Raises CasstatError if the system allows fewer."""
    needed = settings.nodes * len(settings.urls) + OTHER_FILES
    needed += settings.nodes + OTHER_CONNECTIONS if settings.listen is not None else 0
    limit, maximum = resource.getrlimit(resource.RLIMIT_NOFILE)
    if maximum not in (resource.RLIM_INFINITY, -1) and needed > maximum:
        raise CasstatError(
            f"{settings.nodes} nodes need {needed} open files, but the limit is {maximum} (hint: raise it with "
            "'ulimit -n', or use fewer nodes)"
        )
    if limit not in (resource.RLIM_INFINITY, -1) and needed > limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, maximum))
