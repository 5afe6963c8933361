"""One report of nodetool as a source: handed over once, at its own pace, with its problem while it has one."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

from collector.model.metric import Values
from collector.model.snapshot import Scrape
from collector.nodetool.nodetool_source import PACE, ReportSource
from tests.collector.fakes import FakeClock


class Deferred(ThreadPoolExecutor):
    """Runs what was submitted when the test says so."""

    def __init__(self) -> None:
        super().__init__(1)
        self.waiting: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, fn: Callable[..., Any], /, *_: Any, **__: Any) -> "Future[Any]":
        self.waiting.append((Future(), fn))
        return self.waiting[-1][0]

    def finish(self) -> None:
        for future, run in self.waiting:
            future.set_result(run())
        self.waiting.clear()


class Asking:
    """A report source on a clock of its own; each report takes `takes_s` and says what stands in `says`."""

    def __init__(self, takes_s: float = 2.0, pace: float = PACE) -> None:
        self.clock = FakeClock()
        self.pool = Deferred()
        self.takes_s = takes_s
        self.says: Values = {("x",): 1}
        self.problem = ""
        self.asked = 0
        self.source = ReportSource("nodetool x", self.ask, self.pool, self.clock, pace)

    def ask(self) -> Scrape:
        self.asked += 1
        self.clock.busy(self.takes_s)
        return Scrape("nodetool x", self.clock.monotonic_s(), self.says, "7 1.0", self.problem)

    def tick(self, after_s: float = 1.0) -> Scrape:
        scrape = self.source.read(0.0)
        self.clock.busy(after_s)
        return scrape


def test_what_was_said_is_handed_over_once_in_the_tick_after() -> None:
    asking = Asking()
    assert asking.tick().values == {}
    assert asking.tick().values == {}
    asking.pool.finish()
    said_s = asking.clock.monotonic_s()
    asking.clock.busy(0.5)
    scrape = asking.tick()
    assert (scrape.values, scrape.at_s, scrape.origin) == ({("x",): 1}, said_s, "7 1.0")
    assert [asking.tick().values for _ in range(5)] == [{}] * 5


def test_while_it_runs_it_is_not_asked_again() -> None:
    asking = Asking()
    for _ in range(100):
        asking.tick()
    assert len(asking.pool.waiting) == 1
    assert asking.source.start() is asking.pool.waiting[0][0]


def test_what_was_begun_before_the_first_tick_is_what_the_first_tick_brings() -> None:
    asking = Asking()
    asking.source.start()
    asking.pool.finish()
    assert asking.tick().values == {("x",): 1}


def test_the_second_time_does_not_wait_and_the_later_ones_keep_the_pace() -> None:
    asking = Asking(takes_s=2.0, pace=5.0)
    ends = []
    for _ in range(60):
        asking.tick()
        if asking.pool.waiting:
            asking.pool.finish()
            ends.append(asking.clock.monotonic_s())
    assert ends[1] - ends[0] <= 2.0 + 2.0
    gaps = [later - earlier for earlier, later in pairwise(ends[1:])]
    assert len(gaps) >= 4
    # From one end to the next: what it takes, and four times that in between; a tick finds out a little later.
    assert all(5 * 2.0 - 0.5 <= gap <= 5 * 2.0 + 2.0 for gap in gaps)


def test_while_it_fails_every_tick_says_why() -> None:
    asking = Asking()
    asking.says, asking.problem = {}, "nodetool x: no answer"
    assert asking.tick().problem == ""
    asking.pool.finish()
    assert [asking.tick().problem for _ in range(4)] == ["nodetool x: no answer"] * 4
    asking.says, asking.problem = {("x",): 2}, ""
    while not asking.tick().values:
        asking.pool.finish()
    assert [asking.tick().problem for _ in range(4)] == [""] * 4


def test_what_was_understood_in_part_is_told_with_its_values_and_not_again() -> None:
    asking = Asking()
    asking.problem = "nodetool x: a line was not understood"
    asking.tick()
    asking.pool.finish()
    assert asking.tick().problem == "nodetool x: a line was not understood"
    assert [asking.tick().problem for _ in range(4)] == [""] * 4
