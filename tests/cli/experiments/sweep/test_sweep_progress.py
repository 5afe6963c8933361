"""The remaining time of a sweep is estimated from its runs, or from the duration before the first run has ended."""

from dataclasses import replace

import pytest

from cli.experiments.sweep_program import OVERHEAD_S, duration_text, progress_line, remaining_s
from collector.runs.parameter_sweep import GIVEN, Sweep, SweepRun, SweepSettings, SweptParameter

SWEEP = Sweep("s", 0.0, "1", (SweptParameter("c", ("1", "2", "3")),), SweepSettings(("true",)), GIVEN, 0, 2, 10.0)


def test_the_remaining_time_is_unknown_without_a_duration_until_a_run_has_ended() -> None:
    assert remaining_s(SWEEP) is None
    limited = replace(SWEEP, settings=SweepSettings(("true",), duration_s=180.0, cool_down_s=5.0))
    assert remaining_s(limited) == 6 * (185 + OVERHEAD_S) + 5 * 10


def test_the_remaining_time_follows_from_the_runs_that_succeeded() -> None:
    runs = (SweepRun("runs/1", 0.0, 200.0), SweepRun("runs/2", 200.0, 201.0, "failed"))
    assert remaining_s(replace(SWEEP, runs=runs)) == 4 * 200 + 3 * 10
    assert remaining_s(replace(SWEEP, runs=runs[1:])) == 5 * 1 + 4 * 10
    assert remaining_s(replace(SWEEP, runs=runs[:1] * 6)) == 0


def test_a_line_has_the_number_the_combination_and_the_remaining_time() -> None:
    assert progress_line(1, SWEEP, "c=1", 1) == "[1/6] c=1, repeat 1"
    runs = (SweepRun("runs/1", 0.0, 600.0),)
    assert progress_line(2, replace(SWEEP, runs=runs), "c=2", 1) == "[2/6] c=2, repeat 1 … 51 min left"
    assert progress_line(2, replace(SWEEP, runs=runs, repeats=1), "c=2", 1) == "[2/3] c=2 … 20 min left"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (89, "89 s"), (90, "2 min"), (3599, "1 h"), (3660, "1 h 1 min"), (7200, "2 h"), (86400, "24 h")],
)
def test_durations_are_readable(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
