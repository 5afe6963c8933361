"""While a node does not answer, its time in garbage collection is known from its next answer or from its log."""

from collections.abc import Mapping

import pytest

from collector.merge.grid import NodeInterval, SpanGrid
from collector.merge.merge_job import NodeRun
from collector.model.metric import Series
from collector.model.snapshot import Derived, Event, Rate, Sample, Tick
from collector.recording.header import Header
from exporters.results.saturation.usage import silent_gc_shares
from tests.collector.merge.interval_columns import columns_of

BEGIN_S = 1_700_000_000.0
GRID = SpanGrid(1.0, spans=((BEGIN_S, BEGIN_S + 10),))
GC_TIME = ("cassandra_jvm_gc_seconds_total", "G1 Old Generation")
SOURCE = "node"


def interval(number: int, rate: Rate | None = None, *events: Event, answers: bool = True) -> NodeInterval:
    """Return the interval with this number in GRID; with an answer, it contains `rate`."""
    tick = Tick(BEGIN_S + number + 1)
    values: dict[Series, Derived] = {GC_TIME: rate} if rate is not None else {}
    elapsed = {SOURCE: 1.0 if rate is None else rate.elapsed_s} if answers else {}
    return NodeInterval(Sample("n1", tick, values, elapsed, events=events), 1)


def shares(intervals: Mapping[int, NodeInterval]) -> dict[int, float]:
    head = Header("1.0", 1.0, "one", sources=(SOURCE,))
    return silent_gc_shares(GRID, NodeRun(columns_of("n1", head, GRID, intervals)))


def silent(number: int, *events: Event) -> NodeInterval:
    return interval(number, None, *events, answers=False)


def pause(end_s: float, length_ms: int) -> Event:
    return Event("gc", f"GC G1 Old Generation {length_ms} ms", BEGIN_S + end_s)


def test_the_next_answer_covers_the_time_since_the_previous_one() -> None:
    intervals = {0: interval(0, Rate(0.0, 1.0)), 1: silent(1), 2: silent(2), 3: interval(3, Rate(1.8, 3.0))}
    assert shares(intervals) == {1: pytest.approx(0.6), 2: pytest.approx(0.6)}


def test_after_the_last_answer_the_pauses_in_the_log_are_known() -> None:
    intervals = {
        0: interval(0, Rate(0.0, 1.0)),
        1: silent(1, pause(1.9, 600)),
        2: silent(2),
        3: silent(3, pause(3.5, 1000)),
    }
    assert shares(intervals) == {1: pytest.approx(0.6), 2: pytest.approx(0.5), 3: pytest.approx(0.5)}


def test_without_pauses_in_the_log_the_share_after_the_last_answer_is_unknown() -> None:
    assert shares({0: interval(0, Rate(0.0, 1.0)), 1: silent(1), 2: silent(2)}) == {}


def test_the_counters_of_the_next_answer_take_precedence_over_the_log() -> None:
    intervals = {0: interval(0), 1: silent(1, pause(2.0, 100)), 2: interval(2, Rate(1.0, 2.0))}
    assert shares(intervals) == {1: pytest.approx(0.5)}


def test_concurrent_cycles_are_not_pauses() -> None:
    cycles: dict[Series, Derived] = {(GC_TIME[0], "ZGC Cycles"): Rate(0.9, 2.0), GC_TIME: Rate(0.1, 2.0)}
    answer = NodeInterval(Sample("n1", Tick(BEGIN_S + 3), cycles, {SOURCE: 2.0}), 1)
    assert shares({0: interval(0), 1: silent(1), 2: answer}) == {1: pytest.approx(0.05)}


def test_the_share_of_an_interval_is_at_most_1() -> None:
    assert shares({0: silent(0, pause(1.0, 900), pause(1.0, 900))}) == {0: 1.0}


def test_intervals_with_an_answer_keep_their_own_values() -> None:
    assert shares({0: interval(0, Rate(0.1, 1.0)), 1: interval(1, Rate(0.9, 1.0), pause(2.0, 900))}) == {}
