"""A nodetool report as a source: it runs at its own pace, returns each value once, and keeps reporting a failure."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

from collector.model.metric import Kind, Values
from collector.model.snapshot import Scrape
from collector.node.catalogue import CATALOGUE
from collector.node.nodetool.nodetool_source import FIRST_RUNS, PACE, ReportSource
from tests.collector.fakes import FakeClock


class Deferred(ThreadPoolExecutor):
    """Runs submitted functions only when the test calls `finish`."""

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


class FakeReport:
    """A report source with a fake clock; each run of the report takes `takes_s` and returns the values in `answer`."""

    def __init__(self, takes_s: float = 2.0, pace: float = PACE) -> None:
        self.clock = FakeClock()
        self.pool = Deferred()
        self.takes_s = takes_s
        self.answer: Values = {("x",): 1}
        self.problem = ""
        self.runs = 0
        self.source = ReportSource("nodetool x", self.run, self.pool, self.clock, CATALOGUE, pace)

    def run(self) -> Scrape:
        self.runs += 1
        self.clock.busy(self.takes_s)
        return Scrape("nodetool x", self.clock.monotonic_s(), self.answer, "7 1.0", self.problem)

    def tick(self, after_s: float = 1.0) -> Scrape:
        scrape = self.source.read(0.0)
        self.clock.busy(after_s)
        return scrape


def test_values_appear_once_in_the_next_tick() -> None:
    report = FakeReport()
    assert report.tick().values == {}
    assert report.tick().values == {}
    report.pool.finish()
    finished_s = report.clock.monotonic_s()
    report.clock.busy(0.5)
    scrape = report.tick()
    assert (scrape.values, scrape.at_s, scrape.origin) == ({("x",): 1}, finished_s, "7 1.0")
    assert [report.tick().values for _ in range(5)] == [{}] * 5


def test_a_running_report_is_not_started_again() -> None:
    report = FakeReport()
    for _ in range(100):
        report.tick()
    assert len(report.pool.waiting) == 1
    assert report.source.start() is report.pool.waiting[0][0]


def test_a_report_started_early_is_read_in_the_first_tick() -> None:
    report = FakeReport()
    report.source.start()
    report.pool.finish()
    assert report.tick().values == {("x",): 1}


def test_the_first_runs_follow_at_once_and_later_ones_keep_the_pace() -> None:
    report = FakeReport(takes_s=2.0, pace=5.0)
    ends = []
    for _ in range(60):
        report.tick()
        if report.pool.waiting:
            report.pool.finish()
            ends.append(report.clock.monotonic_s())
    gaps = [later - earlier for earlier, later in pairwise(ends)]
    assert max(gaps[: FIRST_RUNS - 1]) <= 2.0 + 2.0
    gaps = gaps[FIRST_RUNS - 1 :]
    assert len(gaps) >= 4
    # Each report is followed by a pause four times as long as the report took, extended to the next tick.
    assert all(5 * 2.0 - 0.5 <= gap <= 5 * 2.0 + 2.0 for gap in gaps)


def test_every_tick_reports_a_lasting_failure() -> None:
    report = FakeReport()
    report.answer, report.problem = {}, "nodetool x: no answer"
    assert report.tick().problem == ""
    report.pool.finish()
    assert [report.tick().problem for _ in range(4)] == ["nodetool x: no answer"] * 4
    report.answer, report.problem = {("x",): 2}, ""
    while not report.tick().values:
        report.pool.finish()
    assert [report.tick().problem for _ in range(4)] == [""] * 4


def test_a_partly_parsed_report_reports_its_problem_once() -> None:
    report = FakeReport()
    report.problem = "nodetool x: a line was not understood"
    report.tick()
    report.pool.finish()
    assert report.tick().problem == "nodetool x: a line was not understood"
    assert [report.tick().problem for _ in range(4)] == [""] * 4


def test_counters_with_which_rates_would_be_wrong_are_left_out() -> None:
    report = FakeReport()
    counter, gauge = ("cassandra_keyspace_operations_total", "ks", "Read"), ("cassandra_load_bytes",)
    assert (CATALOGUE[counter[0]].kind, CATALOGUE[gauge[0]].kind) == (Kind.COUNTER, Kind.GAUGE)
    report.answer = {counter: 1, gauge: 2}
    results = []
    # The first run is often the slowest, for instance because nothing is in the page cache yet.
    for takes_s in (12.0, 8.0, 7.0, 8.0, 9.0, 30.0, 10.0):
        report.takes_s = takes_s
        while not report.pool.waiting:
            report.tick()
        report.pool.finish()
        values = report.tick().values
        assert values[gauge] == 2
        results.append((takes_s, counter in values))
    # 1 s is more than a tenth of the 7 s since the run before, but less than a tenth of a time with a pause.
    assert results == [(12, False), (8, True), (7, False), (8, True), (9, True), (30, False), (10, True)]
