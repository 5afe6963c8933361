"""A nodetool report as a source: it runs at its own pace, returns each value once, and keeps reporting a failure."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model.metric import Values
from collector.model.snapshot import Scrape
from collector.node.nodetool.nodetool_source import PACE, READ_SHARE, ReportSource
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
        self.source = ReportSource("nodetool x", self.run, self.pool, self.clock, pace)

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
    read_s = report.clock.monotonic_s() - (1 - READ_SHARE) * report.takes_s
    report.clock.busy(0.5)
    scrape = report.tick()
    assert (scrape.values, scrape.origin) == ({("x",): 1}, "7 1.0")
    assert scrape.at_s == pytest.approx(read_s)
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


def test_the_second_report_follows_soon_and_later_ones_keep_the_pace() -> None:
    report = FakeReport(takes_s=2.0, pace=5.0)
    ends = []
    for _ in range(60):
        report.tick()
        if report.pool.waiting:
            report.pool.finish()
            ends.append(report.clock.monotonic_s())
    # A report is followed by a pause as long as the report took, later four times as long, extended to the next tick.
    first, *gaps = [later - earlier for earlier, later in pairwise(ends)]
    assert 2 * 2.0 - 0.5 <= first <= 2 * 2.0 + 2.0
    assert len(gaps) >= 4
    assert all(5 * 2.0 - 0.5 <= gap <= 5 * 2.0 + 2.0 for gap in gaps)


DURATIONS_S = st.floats(0.5, 30.0)
SHARES = st.floats(READ_SHARE - 0.1, READ_SHARE + 0.1)


@given(st.lists(st.tuples(DURATIONS_S, SHARES), min_size=2, max_size=6))
def test_rates_are_wrong_by_at_most_an_eighth_however_long_the_reports_take(runs: list[tuple[float, float]]) -> None:
    """The counter increases by one per second; nodetool reads it at an unknown moment of its run."""
    report = FakeReport()
    readings = []
    for takes_s, share in runs:
        while not report.pool.waiting:
            report.tick()
        counter = report.clock.monotonic_s() + share * takes_s
        report.takes_s, report.answer = takes_s, {("x",): counter}
        report.pool.finish()
        scrape = report.tick()
        assert scrape.values == report.answer
        readings.append((scrape.at_s, counter))
    rates = [(later[1] - earlier[1]) / (later[0] - earlier[0]) for earlier, later in pairwise(readings)]
    assert rates == pytest.approx([1] * len(rates), abs=0.125)


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
