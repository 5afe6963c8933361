"""Ticks keep their places if a node's clock is set during a recording."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from collector.merge.clock_correction import ClockCorrection, clock_with_steps
from collector.merge.grid import SpanGrid
from collector.merge.merge_job import Job, NodeRun
from collector.merge.recordings import Recording, recordings, sessions
from collector.model.snapshot import Rate, Scrape
from collector.recording.header import SeriesLimit
from collector.recording.reader import Entry
from tests.collector.merge.recorded_nodes import BEGIN_S, READS, busy, record, timed
from tests.collector.merge.reference_merge import merge, reference_merge

TICKS = 100
SPAN = (BEGIN_S + 20.5, BEGIN_S + 80.5)


def offset_at(steps: Sequence[tuple[int, float]], time_s: float) -> float:
    return sum(step_s for second, step_s in steps if time_s - BEGIN_S >= second)


def times_of(node: NodeRun) -> list[float]:
    return [round(tick.time_s - BEGIN_S, 3) for tick in node.columns.all_ticks]


@pytest.mark.parametrize(
    "steps",
    [
        [(40, -60.0)],
        [(40, 3600.0)],
        [(40, -60.0), (60, 60.0)],
        [(30, 7.0), (50, -20.0), (70, 300.0)],
        # Before the run.
        [(10, -60.0)],
        [(10, -60.0), (50, 60.0)],
    ],
)
def test_ticks_are_placed_by_the_monotonic_clock(tmp_path: Path, steps: list[tuple[int, float]]) -> None:
    record(tmp_path / "n1", timed(busy("n1", TICKS), lambda time_s: offset_at(steps, time_s)))
    (recording,), _ = recordings(sessions([tmp_path])[0])
    measured = [(at_s, offset_at(steps, at_s)) for at_s in (SPAN[0] - 1, SPAN[1] + 1)]
    clock = clock_with_steps(recording, measured)
    assert clock is not None
    job = Job(SpanGrid(1.0, spans=(SPAN,)), {"n1": clock}, frozenset([READS[0]]), times_of)
    for merged in (reference_merge([recording], job), merge([recording], job)):
        assert merged.nodes[0].product == list(range(TICKS))
        rates = [rate for sample in merged.cluster.values() if isinstance(rate := sample.sample.values[READS], Rate)]
        assert sum(rate.increase for rate in rates) == 59 * 10


def test_a_clock_that_catches_up_after_a_pause_was_not_wrong(tmp_path: Path) -> None:
    # The monotonic clock of a virtual machine stands still while it is paused.
    ticks = [
        replace(snapshot, scrapes=tuple(replace(scrape, at_s=scrape.at_s - 30) for scrape in snapshot.scrapes))
        if number > 40
        else snapshot
        for number, snapshot in enumerate(busy("n1", TICKS))
        if not 40 < number <= 71
    ]
    record(tmp_path / "n1", ticks)
    (recording,), _ = recordings(sessions([tmp_path])[0])
    assert clock_with_steps(recording, [(BEGIN_S + 20, 0.0), (BEGIN_S + 81, 0.0)]) is None


def test_a_recording_without_steps_has_no_segments(tmp_path: Path) -> None:
    record(tmp_path / "n1", busy("n1", TICKS))
    (recording,), _ = recordings(sessions([tmp_path])[0])
    assert clock_with_steps(recording, [(BEGIN_S, 0.0), (BEGIN_S + 81, 60.0)]) is None
    assert clock_with_steps(recording, []) is None


def placed(clock: ClockCorrection | None, recording: Recording) -> list[float]:
    """Return the times of the ticks on the reference clock, relative to BEGIN_S."""
    assert clock is not None
    entries = (entry for entry in recording.sessions[0].read(SeriesLimit(10, "n1")) if isinstance(entry, Entry))
    ticks = ((clock.of_tick(entry.head.session, entry.number), entry.snapshot.tick.time_s) for entry in entries)
    return [of_tick.reference_s(time_s) - BEGIN_S for of_tick, time_s in ticks]


def test_a_small_step_in_a_long_run_is_no_drift(tmp_path: Path) -> None:
    ticks = 1000

    def ahead_s(time_s: float) -> float:
        """The clock also drifts."""
        return (time_s - BEGIN_S) * 1e-4 + offset_at([(500, 0.9)], time_s)

    record(tmp_path / "n1", timed(busy("n1", ticks), ahead_s), full_every=100)
    (recording,), _ = recordings(sessions([tmp_path])[0])
    clock = clock_with_steps(recording, [(at_s, ahead_s(at_s)) for at_s in (BEGIN_S, BEGIN_S + ticks)])
    assert placed(clock, recording) == pytest.approx(list(range(ticks)), abs=2e-3)


@pytest.mark.parametrize("step_s", [0.9, 60.0, -60.0, 3600.0])
def test_a_single_measurement_is_that_before_a_step(tmp_path: Path, step_s: float) -> None:
    record(tmp_path / "n1", timed(busy("n1", TICKS), lambda time_s: 2.0 + offset_at([(40, step_s)], time_s)))
    (recording,), _ = recordings(sessions([tmp_path])[0])
    clock = clock_with_steps(recording, [(BEGIN_S + 20, 2.0)])
    assert placed(clock, recording) == pytest.approx(list(range(TICKS)))


def test_a_report_that_finished_before_its_tick_is_no_step(tmp_path: Path) -> None:
    ticks = timed(busy("n1", TICKS), lambda time_s: offset_at([(40, 60.0)], time_s))
    for number in range(5, TICKS, 7):
        (scrape,) = ticks[number].scrapes
        report = Scrape("nodetool tpstats", scrape.at_s - 0.9, {}, problem="failed")
        ticks[number] = replace(ticks[number], scrapes=(report, scrape))
    record(tmp_path / "n1", ticks, sources=("nodetool tpstats", "cassandra"))
    (recording,), _ = recordings(sessions([tmp_path])[0])
    clock = clock_with_steps(recording, [(BEGIN_S + 20, 0.0), (BEGIN_S + 81, 60.0)])
    assert placed(clock, recording) == pytest.approx(list(range(TICKS)))
