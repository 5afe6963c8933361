"""Produces the rows of the default `casstat` command with a simulated clock that never waits."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from types import TracebackType

from cli.line.row_printer import view_for_sample
from collector.model.clock import ticks
from collector.model.snapshot import SourceError, Tick
from collector.node.catalogue import BEANS
from collector.node.jolokia.client import Jolokia
from collector.node.jolokia.mbean_source import MBeanSource
from collector.node.node_sampler import NameOverrides, NodeSampler
from collector.node.selection import Selection
from exporters.rows import printed_rows
from exporters.rows.operation_columns import Operations
from exporters.rows.view import View
from tests.faults.fake_jolokia import FakeJolokia
from tests.faults.program import Row

BEGAN_S = 1_700_000_000.25


class ManualClock:
    """A clock that advances only in `sleep`, which first calls `on_sleep`. That function may set the wall clock."""

    def __init__(self) -> None:
        self.wall = BEGAN_S
        self.monotonic = 5000.0
        self.slept: list[float] = []
        self.on_sleep: Callable[[float], None] = lambda _: None

    def wall_s(self) -> float:
        return self.wall

    def monotonic_s(self) -> float:
        return self.monotonic

    def suspended_s(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        assert len(self.slept) < 100_000, "endless wait"
        # A real clock advances at least a little during every wait.
        seconds = max(seconds, 1e-6)
        self.slept.append(seconds)
        self.on_sleep(seconds)
        self.wall += seconds
        self.monotonic += seconds


class Simulation:
    """The default command's rows, with a simulated clock. Entering the `with` block produces a row without load."""

    def __init__(self, fake: FakeJolokia, interval_s: float = 1.0, keyspace: str = "", table: str = "") -> None:
        self.fake = fake
        self.clock = ManualClock()
        self.rows: list[Row] = []
        self.reads_done = 0
        self._operations = Operations(keyspace, table)
        self._interval_s = interval_s
        self._jolokia = Jolokia(fake.url)
        self._stream = self._row_stream()

    def __enter__(self) -> "Simulation":
        self.next()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._jolokia.close()

    def next(self, reads: int = 0, latency_us: int = 500) -> Row:
        """Make the node do reads, and return the row of the interval that contains them."""
        self.fake.node.do_reads(reads, latency_us)
        self.reads_done += reads
        self.rows.append(next(self._stream))
        return self.rows[-1]

    def until(self, fits: Callable[[Row], bool], reads: int = 0, within: int = 70) -> Row:
        """Return the first new row for which `fits` returns true; it must be among the next `within` rows."""
        for _ in range(within):
            if fits(row := self.next(reads)):
                return row
        raise AssertionError(f"no such row among {self.rows[-within:]}")

    def _row_stream(self) -> Iterator[Row]:
        view = View(self._operations)
        wanted = view.metrics(view.columns)
        selection = Selection(wanted, self._operations.keyspace, self._operations.table)
        source = MBeanSource(self._jolokia, BEANS, selection, self.clock)
        sampler = NodeSampler(source, selection, NameOverrides(), self.clock)
        with suppress(SourceError):
            sampler.learn(3.0)
        snapshots = sampler.snapshots(ticks(self.clock, self._interval_s), self._interval_s)
        for sample in sampler.sample_stream().samples(snapshots):
            row: Row = json.loads(printed_rows.json_row(view_for_sample(view, sampler.devices, sample), sample))
            yield row


def tick_list(clock: ManualClock, interval_s: float, number: int) -> list[tuple[Tick, float]]:
    """Return `number` ticks, each with the monotonic time at which it arrived."""
    stream = ticks(clock, interval_s)
    with closing(stream):  # type: ignore[type-var]
        return [(next(stream), clock.monotonic) for _ in range(number)]
