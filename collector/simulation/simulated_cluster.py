"""The nodes of a simulated cluster, their snapshots at any time, and the headers of their recordings.

Restarts and failures follow a fixed schedule without a beginning. No state is kept between two snapshots of a node.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor
from random import Random
from uuid import UUID

from collector.model.metric import ScrapeInterval, Series, Value, Values
from collector.model.snapshot import JOLOKIA_SOURCE, Identity, Placement, Scrape, Snapshot, Tick, with_rounded_times
from collector.node.catalogue import CATALOGUE, HOST
from collector.node.metrics.compaction import BEANS as COMPACTION_BEANS
from collector.recording.header import Header
from collector.simulation.simulated_series import KEYSPACE, series_rules, table_names
from collector.simulation.value_rules import DISK, INTERFACE, LoadCurve, Moment, load_curve

# The machines' boot time, 2020-01-01, give or take a month.
BOOT_TIME_S = 1_577_836_800.0
BOOT_SPREAD_S = 30 * 86400.0
NO_ANSWER = "no complete response in time"
# The time that a node takes to answer, and the delay of a tick.
ANSWER_S, LATE_S = (0.004, 0.03), 0.002
# Reads and writes per second at the average load, and the share of them that is slow.
OPERATIONS_PER_S, SLOW_SHARE = (1500.0, 4500.0), 0.02
# A compaction runs for the first part of each period.
COMPACTION_EVERY_S, COMPACTION_S, COMPACTION_BYTES = 200.0, 60.0, 12 << 30
_START_TIME: Series = ("cassandra_jvm_start_time_seconds",)
_OF_THE_PROCESS = ("cgroup", "process")
# The origins of a machine's counters, other than its boot.
_ORIGINS = {"network": "/proc/net"}
CLUSTER = "simulated"
SEED = 1
DATACENTRES, RACKS = 2, 3


@dataclass(frozen=True)
class Disturbances:
    """How often a node restarts and stops answering, and for how long it is then silent."""

    restart_every_s: float = 4 * 3600.0
    restart_s: float = 40.0
    silent_every_s: float = 3600.0
    silent_s: float = 8.0


DEFAULT = Disturbances()
CALM = Disturbances(restart_every_s=10 * 365 * 86400.0, restart_s=0.0, silent_s=0.0)
"""No disturbances, except that each JVM has started at some time in the last ten years."""


@dataclass(frozen=True)
class Lifecycle:
    """A node's schedule; the offsets distribute the events of several nodes over the period."""

    disturbances: Disturbances
    boot_s: float
    restart_offset_s: float
    silent_offset_s: float

    def start_s(self, time_s: float) -> float:
        """Return the start time of the JVM that runs at `time_s`, or that starts next if none is running."""
        begin_s = self.number_of_starts(time_s) * self.disturbances.restart_every_s + self.restart_offset_s
        return begin_s + self.disturbances.restart_s

    def number_of_starts(self, time_s: float) -> int:
        """Return a number that identifies the JVM of `start_s`."""
        return floor((time_s - self.restart_offset_s) / self.disturbances.restart_every_s)

    def runs(self, time_s: float) -> bool:
        """Return whether a JVM is running."""
        return time_s >= self.start_s(time_s)

    def answers(self, time_s: float) -> bool:
        """Return whether the node answers: its JVM is running and does not hang."""
        since_silent_s = (time_s - self.silent_offset_s) % self.disturbances.silent_every_s
        return self.runs(time_s) and since_silent_s >= self.disturbances.silent_s


@dataclass(frozen=True)
class Traffic:
    """One kind of operation: its rate per second at the average load, and the curves of fast and slow operations."""

    per_s: float
    fast: LoadCurve
    slow: LoadCurve


class SimulatedNode:
    """Returns snapshots as the sampler of a real node with Jolokia does."""

    def __init__(
        self,
        number: int,
        size: int,
        tables: int,
        *,
        seed: int = SEED,
        cluster: str = CLUSTER,
        disturbances: Disturbances = DEFAULT,
    ) -> None:
        """Create a node of a cluster with `size` nodes; `seed` and `number` determine its values."""
        self._seed = f"{seed} {number}"
        generator = Random(self._seed)  # noqa: S311 - not for secrets
        rack, address = number // DATACENTRES % RACKS, f"10.{number // 62500}.{number // 250 % 250}.{1 + number % 250}"
        self.identity = Identity(cluster, f"dc{1 + number % DATACENTRES}", f"rack{1 + rack}", address)
        self._rules = series_rules(tables)
        self._tables = tables
        self.lifecycle = Lifecycle(
            disturbances,
            BOOT_TIME_S - generator.uniform(0, BOOT_SPREAD_S),
            generator.uniform(0, disturbances.restart_every_s),
            generator.uniform(0, disturbances.silent_every_s),
        )
        self._busy = load_curve(generator)
        self._traffic = {
            operation: Traffic(generator.uniform(*OPERATIONS_PER_S), load_curve(generator), load_curve(generator))
            for operation in ("Read", "Write")
        }
        # Machines of different clusters differ even if their nodes have the same values.
        machine = UUID(int=Random(f"{self._seed} {cluster}").getrandbits(128))  # noqa: S311 - not for secrets
        self.placement = Placement(str(machine), "net:[4026531840]", DISK, INTERFACE)
        self._names: Values = {
            ("cassandra_cluster_name",): cluster,
            ("cassandra_datacenter",): self.identity.dc,
            ("cassandra_rack",): self.identity.rack,
            ("cassandra_endpoints_live",): size,
            ("cassandra_endpoints_up",): size,
        }

    @property
    def node(self) -> str:
        return self.identity.node

    def snapshot(self, tick: Tick, interval_s: float, *, first: bool = False) -> Snapshot:
        """Return the snapshot of a tick; `interval_s` is the time since the previous one.

        Slow series are contained only when they are due, or if it is the `first` snapshot of an agent or of a JVM. The
        delay of `tick` is replaced by a simulated one.
        """
        noise = Random(f"{self._seed} {tick.time_s:.3f}")  # noqa: S311 - not for secrets
        at_s = tick.time_s + noise.random() * LATE_S
        answered_s = at_s + noise.uniform(*ANSWER_S)
        scrapes = list(self._host_scrapes(at_s, noise, tick, interval_s, first))
        scrapes.append(self._cassandra_scrape(at_s, answered_s, noise, tick, interval_s, first))
        return with_rounded_times(
            Snapshot(self.node, Tick(tick.time_s, at_s - tick.time_s, tick.missed), tuple(scrapes))
        )

    def _host_scrapes(self, at_s: float, noise: Random, tick: Tick, interval_s: float, first: bool) -> Iterator[Scrape]:
        """Yield the scrapes of the machine, whose process metrics begin with each JVM."""
        life = self.lifecycle
        machine = self._moment(life.boot_s, at_s, noise)
        jvm = self._moment(life.start_s(at_s), at_s, noise)
        process = str(1000 + life.number_of_starts(at_s) % 30_000)
        for subject in HOST:
            values: Values = {}
            if subject.name not in _OF_THE_PROCESS:
                values = self._values(subject.name, machine, tick, interval_s, first)
            elif life.runs(at_s):
                values = self._values(subject.name, jvm, tick, interval_s, first)
            origin = process if subject.name in _OF_THE_PROCESS else _ORIGINS.get(subject.name, "boot")
            yield Scrape(subject.name, at_s, values, origin, wall_s=2e-4, cpu_s=2e-4)

    def _cassandra_scrape(
        self, at_s: float, answered_s: float, noise: Random, tick: Tick, interval_s: float, first: bool
    ) -> Scrape:
        life = self.lifecycle
        wall_s = answered_s - at_s
        if not life.answers(answered_s):
            return Scrape(JOLOKIA_SOURCE, answered_s, problem=NO_ANSWER, wall_s=wall_s)
        # After silence, everything is read again, because the JVM may be a new one.
        is_new = first or not life.answers(tick.time_s - interval_s)
        jvm = self._moment(life.start_s(answered_s), answered_s, noise)
        values = self._values(JOLOKIA_SOURCE, jvm, tick, interval_s, is_new)
        names_due = is_new or _is_due(int(ScrapeInterval.SLOW.value), 0, tick, interval_s)
        start_s = life.start_s(answered_s)
        values.update(self._other_values(answered_s, start_s, all_names=names_due))
        return Scrape(JOLOKIA_SOURCE, answered_s, values, str(round(start_s * 1000)), wall_s=wall_s, cpu_s=1e-3)

    def _moment(self, begin_s: float, now_s: float, noise: Random) -> Moment:
        fast, slow = {}, {}
        for operation, traffic in self._traffic.items():
            fast[operation] = traffic.per_s * (1 - SLOW_SHARE) * traffic.fast.amount(begin_s, now_s)
            slow[operation] = traffic.per_s * SLOW_SHARE * traffic.slow.amount(begin_s, now_s)
        busy = self._busy
        return Moment(
            now_s - begin_s,
            busy.amount(begin_s, now_s),
            fast,
            slow,
            busy.level(now_s),
            lambda: 0.9 + 0.2 * noise.random(),
        )

    def _values(self, source: str, moment: Moment, tick: Tick, interval_s: float, all_series: bool) -> Values:
        values: Values = {}
        for (every_s, phase_s), rules in self._rules[source].items():
            if all_series or _is_due(every_s, phase_s, tick, interval_s):
                for series, rule in rules:
                    values[series] = rule(moment)
        return values

    def _other_values(self, now_s: float, start_s: float, *, all_names: bool) -> Iterator[tuple[Series, Value]]:
        """Yield the series that differ between nodes, and those of a running compaction."""
        yield _START_TIME, round(start_s * 1000)
        for series, value in self._names.items():
            if all_names or series[0].startswith("cassandra_endpoints"):
                yield series, value
        number, since_s = divmod(now_s - self.lifecycle.silent_offset_s, COMPACTION_EVERY_S)
        if since_s < COMPACTION_S:
            labels = f"{int(number):08x}", KEYSPACE, table_names(self._tables)[int(number) % self._tables], "Compaction"
            progress, size = (bean.metric.name for bean in COMPACTION_BEANS if "id" in bean.metric.labels)
            yield (progress, *labels), int(COMPACTION_BYTES * since_s / COMPACTION_S)
            yield (size, *labels), COMPACTION_BYTES


def _is_due(every_s: int, phase_s: int, tick: Tick, interval_s: float) -> bool:
    if interval_s >= every_s:
        return True
    return (tick.time_s + phase_s) // every_s > (tick.time_s - interval_s + phase_s) // every_s


def simulated_cluster(
    size: int, tables: int, *, seed: int = SEED, cluster: str = CLUSTER, disturbances: Disturbances = DEFAULT
) -> list[SimulatedNode]:
    """Return the nodes; a node's values depend on the seed and its number, its names also on the cluster's."""
    return [
        SimulatedNode(number, size, tables, seed=seed, cluster=cluster, disturbances=disturbances)
        for number in range(size)
    ]


def header_of(node: SimulatedNode, interval_s: float, session: str, writer: str) -> Header:
    """Return the header of a recording of a node; `writer` is casstat's version."""
    where = node.placement
    return Header(
        writer,
        interval_s,
        session,
        boot=where.machine,
        network=where.network,
        process=f"1@{node.node}",
        error_s=0.002,
        way="jolokia",
        sources=(JOLOKIA_SOURCE,),
        disk=where.disk,
        interface=where.interface,
        metrics=tuple(CATALOGUE.values()),
    )
