"""A simulated node with a journal, a scripted store, and a clock that advances only while waiting."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from collector.merge.aggregation import placement_of
from collector.model.metric import Metric, Value
from collector.model.snapshot import Identity, Placement, Sample, Scrape, Snapshot, Tick, with_rounded_times
from collector.node.node_sampler import SampleStream
from collector.recording.header import Header
from collector.recording.writer import Journal, Limits, Position, files_of
from exporters.recent_ticks import RecentTicks
from exporters.sinks.parts.points import SampleSink, rows, time_ms
from exporters.sinks.shipping.shipper import Plan, Runtime, Shipper, journal_opener
from exporters.sinks.sink import NodeTick
from tests.collector.snapshots import BYTES, CATALOGUE, DURATIONS, MODE, REQUESTS, SECONDS

BEGIN_S = 1_795_000_000.0
CLUSTER = Metric("cassandra_cluster_name", MODE.kind, "", "")
METRICS = (*CATALOGUE.values(), CLUSTER)
# The number of ticks between two readings of a slow metric.
RARELY = 60


def head(session: str = "one", interval_s: float = 1.0, network: str = "") -> Header:
    return Header("1.0", interval_s, session, boot="machine", network=network, sources=("node",), metrics=METRICS)


def snapshot(number: int, *, missed: int = 0, step_s: float = 0.0) -> Snapshot:
    """Return a tick's snapshot. The `Rare` series and the cluster name are read once a minute, in different ticks."""
    values: dict[tuple[str, ...], Value] = {REQUESTS: 10 * number, SECONDS: 5000 * number}
    if number % RARELY == 7:
        values[REQUESTS[0], "Rare"] = 600 * number
    if number % RARELY == 5 or number == 0:
        values[CLUSTER.name,] = "prod"
    values[DURATIONS] = tuple(10 * number if index == 30 else 0 for index in range(128))
    values[BYTES] = 100.5 + number
    scrape = Scrape("node", 5.0 + number, values, "1")
    return with_rounded_times(Snapshot("n1", Tick(BEGIN_S + number + step_s, missed=missed), (scrape,)))


def point(identity: Identity, series: Sequence[str], sample: Sample, fields: Mapping[str, float]) -> bytes:
    return repr((time_ms(sample), *identity.labels().values(), *series, sorted(fields.items()))).encode()


@dataclass
class Store(SampleSink):
    """A scripted store.

    `script` holds the result of each attempt: an error, or None for success. Once it is empty, `always` decides.
    """

    name: str = "fake://store"
    script: list[Exception | None] = field(default_factory=list)
    always: Callable[[Sequence[bytes]], Exception | None] = lambda _: None
    taken: list[bytes] = field(default_factory=list)
    placements: dict[float, Placement] = field(default_factory=dict)
    attempts: int = 0

    def encode_sample(self, tick: NodeTick, sample: Sample) -> list[bytes]:
        self.placements[sample.tick.time_s - BEGIN_S] = tick.placement
        return [point(tick.identity, series, sample, fields) for series, fields in rows(self.catalogue, sample)]

    def send(self, points: Sequence[bytes], timeout_s: float) -> None:
        assert 0 < timeout_s <= 10
        self.attempts += 1
        error = self.script.pop(0) if self.script else self.always(points)
        if error is not None:
            raise error
        self.taken += points


class Time:
    """A clock that advances only in `wait`."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.waits: list[float] = []
        self.stop_after: int | None = None
        self.stop_at_s: float | None = None
        self.cpu_s: Callable[[], float] = lambda: 0.0

    def wait(self, seconds: float) -> bool:
        self.now_s += seconds
        if seconds:
            self.waits.append(seconds)
        has_waited = self.stop_after is not None and len(self.waits) >= self.stop_after
        return has_waited or (self.stop_at_s is not None and self.now_s >= self.stop_at_s)

    def runtime(self) -> Runtime:
        return Runtime(self.wait, lambda: self.now_s, lambda: BEGIN_S + self.now_s, self.cpu_s, lambda: 0.5)


@dataclass
class Node:
    """A recorded node, and the store that its ticks are shipped to."""

    folder: Path
    store: Store = field(default_factory=Store)
    time: Time = field(default_factory=Time)
    messages: list[str] = field(default_factory=list)
    recent: RecentTicks | None = None
    session: str = "one"
    network: str = ""
    limits: Limits = field(default_factory=lambda: Limits(sync="never"))
    number: int = 0
    step_s: float = 0.0

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Start recording with an empty state, like a newly started program."""
        self.journal = Journal(
            self.folder, lambda: head(self.session, network=self.network), self.limits, self.messages.append
        )
        catalogue = head().catalogue
        self._sampling = SampleStream(catalogue, ("node",), paced=False, met=True)
        self._identity = Identity()

    def new_session(self, session: str) -> None:
        """Stop recording and start a new session; like an agent, it still knows the node's identity."""
        self.journal.close()
        self.session, identity = session, self._identity
        self.begin()
        self._identity = identity
        if self.recent is not None:
            self.recent.clear()

    def record(self, ticks: int, *, missed: int = 0) -> None:
        for _ in range(ticks):
            self.number += missed
            tick = snapshot(self.number, missed=missed, step_s=self.step_s)
            self.journal.append(tick)
            sample = self._sampling.add(tick)
            self._identity = self._identity.after(tick)
            if self.recent is not None:
                assert self.journal.header is not None
                where = placement_of(self.journal.header)
                self.recent.add(tick, self._identity, where, sample, self.journal.position)
            self.number += 1

    def shipping(self, **choices: object) -> Shipper:
        plan = Plan(journal_opener(self.folder), state_folder=self.folder.parent / "kept", recent=self.recent)
        plan = Plan(**{**plan.__dict__, **choices})
        return Shipper(self.store, plan, self.time.runtime(), self.messages.append)


def drain(shipping: Shipper) -> None:
    """Ship all recorded ticks."""
    while shipping.step():
        pass


def ticks_of(points: Sequence[bytes]) -> list[float]:
    """Return the distinct times of the points in order of arrival, in seconds since the first tick."""
    return list(dict.fromkeys(int(point[1:].split(b",")[0]) / 1000 - BEGIN_S for point in points))


def end_of(folder: Path) -> Position:
    """Return the position at the end of a journal."""
    last = files_of(folder)[-1]
    return Position(last.name, last.stat().st_size)
