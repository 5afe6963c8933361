"""A node through nodetool: each report a source of its own, run in the background and at its own pace."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from types import ModuleType

from collector.catalogue import REPORTS
from collector.host.cassandra_processes import LocalNode, NodeFacts
from collector.model.clock import EARLY_S, Clock
from collector.model.snapshot import Scrape, SourceError
from collector.nodetool.reports import tablestats
from collector.nodetool.reports.local_operations import sums
from collector.nodetool.runner import Nodetool
from collector.sampling.selection import Selection, Table

# A JVM starts for every report: two at a time, and of all reports together one for half of the time at most.
PARALLEL = 2
PACE = 4.0
SHARE = 0.5
TIMEOUT_S = 30.0
PREFIX = "nodetool "
# It names the address of every node by its host id.
STATUS = "status"


@dataclass(frozen=True)
class ReportRequest:
    """One report that is wanted: its module, and nodetool's arguments for it."""

    module: ModuleType
    arguments: tuple[str, ...]

    @property
    def name(self) -> str:
        """What its scrapes are called."""
        return PREFIX + self.arguments[0]

    @property
    def whole(self) -> bool:
        """Whether it is about the whole node, no keyspace or table alone."""
        return self.arguments == tuple(self.module.ARGUMENTS)


def wanted(selection: Selection, *, always: Sequence[str] = ()) -> list[ReportRequest]:
    """Return the reports that fill what is selected, and those named in `always`; the reads and writes come first."""
    found = []
    for module in REPORTS:
        arguments = module.ARGUMENTS
        if hasattr(module, "arguments"):
            arguments = module.arguments(selection.keyspace, selection.table)
        fills = selection.metrics is None or not selection.metrics.isdisjoint(module.FILLS)
        if arguments and (fills or arguments[0] in always):
            found.append(ReportRequest(module, tuple(arguments)))
    return sorted(found, key=lambda asked: asked.arguments[0] != "tablestats")


class ReportSource:
    """One report as a source: what it said last is handed over once, in the tick after it has finished.

    While it fails, every tick says why.
    """

    def __init__(
        self, name: str, ask: Callable[[], Scrape], pool: ThreadPoolExecutor, clock: Clock, pace: float = PACE
    ) -> None:
        """Take what asks, and how many times what it took must have passed before it is asked again."""
        self.name = name
        self._pace = pace
        self._asked = 0
        self._ask = ask
        self._pool = pool
        self._clock = clock
        self._running: Future[tuple[Scrape, float]] | None = None
        self._due_s = 0.0
        self._problem = ""

    def start(self) -> Future[tuple[Scrape, float]]:
        """Begin to ask, if that has not begun yet."""
        if self._running is None:
            self._running = self._pool.submit(self._timed)
        return self._running

    def read(self, timeout_s: float) -> Scrape:
        """Return the report that has finished since the last tick, else nothing; ask again when it is time."""
        now_s = self._clock.monotonic_s()
        scrape = Scrape(self.name, now_s, problem=self._problem)
        if self._running is not None and self._running.done():
            scrape, took_s = self._running.result()
            self._running = None
            # One that was understood in part has answered: that is told once, and what it said is held on to.
            self._problem = "" if scrape.values else scrape.problem
            self._asked += 1
            # There is no rate before the second time: that one does not wait.
            self._due_s = scrape.at_s + (self._pace - 1) * took_s if self._asked > 1 else 0.0
        if now_s >= self._due_s - EARLY_S:
            self.start()
        return scrape

    def _timed(self) -> tuple[Scrape, float]:
        began_s = self._clock.monotonic_s()
        scrape = self._ask()
        return scrape, scrape.at_s - began_s


class NodetoolSource:
    """The node that `tool` asks. `find` looks for its process on this machine."""

    kind = "nodetool"
    paced = True
    host = "127.0.0.1"

    def __init__(
        self, tool: Nodetool, selection: Selection, clock: Clock, find: Callable[[], LocalNode | None]
    ) -> None:
        self.url = f"{tool.program}"
        self._tool = tool
        self._clock = clock
        self._find = find
        self._local = find()
        # Replaced and never changed: reports come in other threads than the one that looks at it.
        self._said: Mapping[str, str] = {}
        self._addresses: Mapping[str, str] = {}
        self._saying = threading.Lock()
        self._seen: set[str] = set()
        self._pool = ThreadPoolExecutor(PARALLEL, "nodetool")
        # Where its process cannot be watched, only `info` tells a restart.
        asked = wanted(selection, always=() if self._local else ("info",))
        pace = max(PACE, len(asked) / SHARE)
        self.sources = [
            ReportSource(each.name, lambda each=each: self._ask(each), self._pool, clock, pace)  # type: ignore[misc]
            for each in asked
        ]
        self._once = [
            each
            for each in wanted(Selection(frozenset()), always=("info", STATUS))
            if each.name not in {source.name for source in self.sources}
        ]
        self._asking: list[Future[tuple[Scrape, float]]] = []

    def learn(self, timeout_s: float) -> NodeFacts:
        """Return what is known of the node; the first time, all reports are asked for and waited for.

        Raises SourceError when none of them answers in time.
        """
        if not self._seen:
            first = [*(source.start() for source in self.sources), *self._ask_once()]
            done, _ = wait(first, timeout_s)
            if not self._seen:
                scrapes = [future.result()[0] for future in first if future in done]
                problems = [f"{scrape.source}: {scrape.problem}" for scrape in scrapes if scrape.problem]
                raise SourceError(next(iter(problems), f"no answer within {timeout_s:.0f} s"))
        address = self._addresses.get(self._said.get("ID", ""), "")
        if not address:
            # What they say is there the next time.
            self._ask_once()
        origin, local = self._origin(), self._local
        directories, pid = (local.directories, local.pid) if local else ((), None)
        peers = tuple(sorted(self.members))
        return NodeFacts(address, directories, self.url, pid=pid, here=True, origin=origin, peers=peers)

    @property
    def members(self) -> frozenset[str]:
        """The addresses of all nodes that the last `status` named."""
        return frozenset(self._addresses.values())

    def peers(self, timeout_s: float) -> tuple[str, ...]:
        """Return those addresses, sorted; starts no nodetool."""
        del timeout_s
        return tuple(sorted(self.members))

    def _ask_once(self) -> list[Future[tuple[Scrape, float]]]:
        """Ask for who the node is, unless that is under way."""
        if all(future.done() for future in self._asking):
            self._asking = [self._pool.submit(lambda each=each: (self._ask(each), 0.0)) for each in self._once]  # type: ignore[misc]
        return self._asking

    def provides(self, metric: str) -> bool:
        """Return whether any report has said anything of the metric."""
        return metric in self._seen

    def tables(self) -> set[Table]:
        """Return the keyspaces, each with "" and with its tables. Raises SourceError when the node does not answer."""
        report = tablestats.parse(self._tool.run(tablestats.ARGUMENTS, TIMEOUT_S))
        names = {(series[1], series[2]) for series in report.values if series[0] == "cassandra_table_operations_total"}
        return names | {(keyspace, "") for keyspace, _ in names}

    def close(self) -> None:
        """End what runs."""
        self._tool.close()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _origin(self) -> str:
        """Return what the node's counters count from: its process, or the generation that it tells."""
        if self._local is None or not self._local.is_running():
            self._local = self._find()
        if self._local is None:
            return self._said.get("Generation No", "")
        return f"{self._local.pid} {self._local.started_s}"

    def _ask(self, asked: ReportRequest) -> Scrape:
        origin = self._origin()
        try:
            text = self._tool.run(asked.arguments, TIMEOUT_S)
        except SourceError as error:
            # Who shows it says whose problem it is.
            return Scrape(asked.name, self._clock.monotonic_s(), problem=str(error).removeprefix(f"{asked.name}: "))
        at_s = self._clock.monotonic_s()
        report = asked.module.parse(text)
        # Who the node is: `info` tells its host id and generation, `status` the address of every host id.
        with self._saying:
            if asked.arguments[0] == STATUS:
                # A node that is no longer named has left the cluster.
                self._addresses = report.said or self._addresses
            else:
                self._said = {**self._said, **report.said}
        now = self._origin()
        if origin and now != origin:
            return Scrape(asked.name, at_s, problem="the node was restarted while it was asked")
        values = dict(report.values)
        if not report.problems and asked.whole:
            values.update(sums(values))
        self._seen.update(series[0] for series in values)
        return Scrape(asked.name, at_s, values, now, _problem(report.problems))


def _problem(problems: Sequence[str]) -> str:
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{problems[0]}{more}" if problems else ""
