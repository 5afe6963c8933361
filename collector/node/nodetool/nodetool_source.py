"""Reads a node through nodetool. Each report is a source that runs in the background at its own pace."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType

from collector.model.clock import EARLY_S, Clock
from collector.model.snapshot import Scrape, SourceError
from collector.node.host.cassandra_processes import LocalNode, NodeFacts
from collector.node.metrics.jvm import CONCURRENT
from collector.node.nodetool.reports import tablestats
from collector.node.nodetool.reports.gcstats import WITH_CYCLES
from collector.node.nodetool.reports.local_operations import sums
from collector.node.nodetool.runner import Nodetool
from collector.node.selection import Selection, Table

# Every report starts a JVM, so at most PARALLEL reports run at once. A report starts at most once every PACE times its
# duration, or less often if there are many reports, so that on average at most SHARE reports are running.
PARALLEL = 2
PACE = 4.0
SHARE = 0.5
# When nodetool reads the node, as a share of its duration. It was 0.72 to 0.95 in 79 of 80 runs (once 0.56), with
# tablestats and tpstats of Cassandra 4.0 and 5.0, idle and beside 12 busy processes, with a cold and a warm page cache.
READ_SHARE = 0.82
# The pace between the first two runs, so that rates are known soon. With it, the ends of two runs are at least the sum
# of their durations apart, so that rates are wrong by at most an eighth if the node is read a tenth of a run earlier or
# later.
FIRST_PACE = 2.0
TIMEOUT_S = 30.0
PREFIX = "nodetool "
# The report that contains the address for every host id.
STATUS = "status"


@dataclass(frozen=True)
class ReportRequest:
    """A selected report: its module, and nodetool's arguments for it."""

    module: ModuleType
    arguments: tuple[str, ...]

    @property
    def name(self) -> str:
        return PREFIX + self.arguments[0]

    @property
    def covers_node(self) -> bool:
        """Whether the report covers all of the node's keyspaces and tables."""
        return self.arguments == tuple(self.module.ARGUMENTS)


def report_requests(
    reports: Sequence[ModuleType], selection: Selection, *, always: Sequence[str] = ()
) -> list[ReportRequest]:
    """Return the reports that provide selected metrics or are named in `always`, with `tablestats` first."""
    requests = []
    for module in reports:
        arguments = module.ARGUMENTS
        if hasattr(module, "arguments"):
            arguments = module.arguments(selection.keyspace, selection.table)
        fills = selection.metrics is None or not selection.metrics.isdisjoint(module.FILLS)
        if arguments and (fills or arguments[0] in always):
            requests.append(ReportRequest(module, tuple(arguments)))
    return sorted(requests, key=lambda request: request.arguments[0] != "tablestats")


class ReportSource:
    """A source for one report. It returns each result once, in the first tick after the report has finished.

    If a report fails, its problem is returned in every tick until a later run succeeds.
    """

    def __init__(
        self,
        name: str,
        run: Callable[[], Scrape],
        pool: ThreadPoolExecutor,
        clock: Clock,
        pace: float = PACE,
    ) -> None:
        """Create the source. After the first two runs, starts are at least `pace` times the report's duration apart."""
        self.name = name
        self._pace = pace
        self._next_pace = min(FIRST_PACE, pace)
        self._run = run
        self._pool = pool
        self._clock = clock
        self._running: Future[Scrape] | None = None
        self._due_s = 0.0
        self._problem = ""

    def start(self) -> Future[Scrape]:
        """Start the report unless it is already running; return the future of its scrape."""
        if self._running is None:
            self._running = self._pool.submit(self._timed)
        return self._running

    def read(self, timeout_s: float) -> Scrape:
        """Return the report's scrape if it has finished since the last tick, else an empty one. Start a run if due."""
        now_s = self._clock.monotonic_s()
        scrape = Scrape(self.name, now_s, problem=self._problem)
        if self._running is not None and self._running.done():
            scrape = self._running.result()
            self._running = None
            # A partly parsed report is not a failure: its values are valid, and its problem is returned only once.
            self._problem = "" if scrape.values else scrape.problem
            self._due_s = scrape.at_s + (self._next_pace - READ_SHARE) * scrape.wall_s
            self._next_pace = self._pace
        if now_s >= self._due_s - EARLY_S:
            self.start()
        return scrape

    def _timed(self) -> Scrape:
        began_s = self._clock.monotonic_s()
        scrape = self._run()
        took_s = scrape.at_s - began_s
        return replace(scrape, at_s=began_s + READ_SHARE * took_s, wall_s=took_s)


class NodetoolSource:
    """Reads a node through `tool`; `find` returns the node's process on this host, or None if it is not found.

    `reports` are the modules that parse the reports (`catalogue.REPORTS`).
    """

    kind = "nodetool"
    paced = True
    host = "127.0.0.1"

    def __init__(
        self,
        tool: Nodetool,
        selection: Selection,
        clock: Clock,
        find: Callable[[], LocalNode | None],
        reports: Sequence[ModuleType],
    ) -> None:
        self.url = f"{tool.program}"
        self._tool = tool
        self._clock = clock
        self._find = find
        self._local = find()
        # These mappings are replaced rather than modified, because the threads that run the reports share them.
        self._node_info: Mapping[str, str] = {}
        self._addresses: Mapping[str, str] = {}
        self._lock = threading.Lock()
        self._seen: set[str] = set()
        self._pool = ThreadPoolExecutor(PARALLEL, "nodetool")
        # As long as the node's process is unknown, only `info` reveals a restart.
        requests = report_requests(reports, selection, always=() if self._local else ("info",))
        pace = max(PACE, len(requests) / SHARE)
        self.sources = [
            ReportSource(request.name, partial(self._run, request), self._pool, clock, pace) for request in requests
        ]
        self._identity_requests = [
            request
            for request in report_requests(reports, Selection(frozenset()), always=("info", STATUS))
            if request.name not in {source.name for source in self.sources}
        ]
        self._identity_runs: list[Future[Scrape]] = []

    def learn(self, timeout_s: float) -> NodeFacts:
        """Return the facts about the node; until a report has succeeded, run all reports and wait for them.

        Raises SourceError if no report succeeds in time.
        """
        if not self._seen:
            first = [*(source.start() for source in self.sources), *self._start_identity_reports()]
            done, _ = wait(first, timeout_s)
            if not self._seen:
                scrapes = [future.result() for future in first if future in done]
                problems = [f"{scrape.source}: {scrape.problem}" for scrape in scrapes if scrape.problem]
                raise SourceError(next(iter(problems), f"no report within {timeout_s:.0f} s"))
        address = self._addresses.get(self._node_info.get("ID", ""), "")
        if not address:
            # Do not wait for the results; the next call will use them.
            self._start_identity_reports()
        origin, local = self._origin(), self._local
        directories, pid = (local.directories, local.pid) if local else ((), None)
        peers = tuple(sorted(self.members))
        return NodeFacts(address, directories, self.url, pid=pid, is_local=True, origin=origin, peers=peers)

    @property
    def members(self) -> frozenset[str]:
        """The addresses of all nodes in the last `status` report."""
        return frozenset(self._addresses.values())

    def peers(self, timeout_s: float) -> tuple[str, ...]:
        """Return the sorted addresses in the last `status` report; this does not run nodetool."""
        del timeout_s
        return tuple(sorted(self.members))

    def _start_identity_reports(self) -> list[Future[Scrape]]:
        """Start the reports that identify the node, unless they are already running."""
        if all(future.done() for future in self._identity_runs):
            self._identity_runs = [self._pool.submit(self._run, request) for request in self._identity_requests]
        return self._identity_runs

    def provides(self, metric: str) -> bool:
        """Return whether any report so far has contained the metric."""
        return metric in self._seen

    def tables(self) -> set[Table]:
        report = tablestats.parse(self._tool.run(tablestats.ARGUMENTS, TIMEOUT_S))
        names = {(series[1], series[2]) for series in report.values if series[0] == "cassandra_table_operations_total"}
        return names | {(keyspace, "") for keyspace, _ in names}

    def close(self) -> None:
        """Kill the running reports and start no more."""
        self._tool.close()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _origin(self) -> str:
        """Return the counters' origin: the node's process or, if it is unknown, the generation number from `info`."""
        if self._local is None or not self._local.is_running():
            self._local = self._find()
        if self._local is None:
            return self._node_info.get("Generation No", "")
        return f"{self._local.pid} {self._local.started_s}"

    def _run(self, request: ReportRequest) -> Scrape:
        origin = self._origin()
        try:
            text = self._tool.run(request.arguments, TIMEOUT_S)
        except SourceError as error:
            # Every view shows the source's name before the problem, so the name is not repeated.
            problem = str(error).removeprefix(f"{request.name}: ")
            return Scrape(request.name, self._clock.monotonic_s(), problem=problem)
        at_s = self._clock.monotonic_s()
        report = request.module.parse(text)
        # `info` contains the host id and the generation number; `status` contains the address for every host id.
        with self._lock:
            if request.arguments[0] == STATUS:
                # Replace all addresses, because a node that is missing from the report has left the cluster.
                self._addresses = report.properties or self._addresses
            else:
                self._node_info = {**self._node_info, **report.properties}
        origin_after = self._origin()
        if origin and origin_after != origin:
            return Scrape(request.name, at_s, problem="the node restarted while the report was running")
        values = dict(report.values)
        if not report.problems and request.covers_node:
            values.update(sums(values))
        if self._local is not None and not set(CONCURRENT).isdisjoint(self._local.command):
            values = {series: value for series, value in values.items() if series[0] not in WITH_CYCLES}
        self._seen.update(series[0] for series in values)
        return Scrape(request.name, at_s, values, origin_after, _problem(report.problems))


def _problem(problems: Sequence[str]) -> str:
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{problems[0]}{more}" if problems else ""
