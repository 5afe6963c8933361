"""What a step's run shows: its data, or why there is no verdict on it."""

from dataclasses import replace
from pathlib import Path

import pytest

from cli.experiments.capacity_steps import RecordedStep, recorded_step
from cli.main import main
from cli.runs.finish import summarise
from cli.runs.run_summary import SUMMARY_FILE
from collector.load_results.client_result import ClientResult
from collector.load_results.result_file import FOLDER, write_result
from collector.runs.run import ClockStep, RunPhase
from collector.runs.run_file import read_run, write_run
from exporters.results.comparison.amounts import ALL
from tests.cli.runs.loaded_run import BEGIN_S, run_in


def step_in(folder: Path, length_s: int = 60, *, has_result: bool = True, clock_step_s: float = 0.0) -> Path:
    """Write a run whose load of 100 operations/s begins with its warm-up; the clock may be set 30 s later."""
    run_in(folder)
    if clock_step_s:
        write_run(folder, replace(read_run(folder), clock_steps=(ClockStep(BEGIN_S + 30, clock_step_s),)))
    times_s = (BEGIN_S + second + (clock_step_s if second >= 30 else 0.0) for second in range(length_s))
    rows = (f"{time_s:.3f},1,100,5" for time_s in times_s)
    file = folder.parent / "load.csv"
    file.write_text("time_s,duration_s,operations,p99_ms\n" + "\n".join(rows) + "\n")
    if has_result:
        assert main(["import", str(folder), str(file)]) == 0
    else:
        summarise(folder, read_run(folder))
    return folder


def test_a_step_has_the_values_of_its_summary_and_the_bins_of_its_clients(tmp_path: Path) -> None:
    step = recorded_step(step_in(tmp_path / "run"))
    assert step.problem == ""
    assert step.data.values["client_ops_per_s"] == pytest.approx(100, rel=0.01)
    assert step.data.client[ALL].completed.sum() / step.data.client[ALL].lengths_s.sum() == pytest.approx(100, rel=0.01)


def test_a_step_during_which_the_clock_was_set_has_the_rate_of_the_run(tmp_path: Path) -> None:
    step = recorded_step(step_in(tmp_path / "run", clock_step_s=3600.0))
    assert step.problem == ""
    assert step.data.values["client_ops_per_s"] == pytest.approx(100, rel=0.01)
    assert step.data.client[ALL].completed.sum() / step.data.client[ALL].lengths_s.sum() == pytest.approx(100, rel=0.01)


def without_data(step: RecordedStep) -> str:
    assert ALL not in step.data.client
    return step.problem


def test_a_step_without_a_result_says_so(tmp_path: Path) -> None:
    folder = step_in(tmp_path / "run", has_result=False)
    missing = "no result of the load generator was recognised"
    assert without_data(recorded_step(folder)).startswith(missing)
    (folder / FOLDER).mkdir()
    write_result(folder / FOLDER / "empty.json", ClientResult("csv", "tool", "file", ()))
    assert without_data(recorded_step(folder)).startswith(missing)


def test_a_step_without_a_result_states_that_the_clock_was_set(tmp_path: Path) -> None:
    problem = without_data(recorded_step(step_in(tmp_path / "run", has_result=False, clock_step_s=-4.0)))
    assert problem == (
        "the recorder's clock was set back by 4.0 s, and there is no result of the load generator, "
        "so what it achieved is unknown"
    )


def test_a_result_outside_of_the_measured_phase_is_named(tmp_path: Path) -> None:
    problem = without_data(recorded_step(step_in(tmp_path / "run", 8)))
    assert "has no interval inside the measured phase, from " in problem


@pytest.mark.parametrize("has_result", [True, False])
def test_a_command_that_ends_within_the_warm_up_has_no_data(tmp_path: Path, has_result: bool) -> None:
    folder = step_in(tmp_path / "run", has_result=has_result)
    run = replace(read_run(folder), phases=(RunPhase("warm-up", BEGIN_S, BEGIN_S + 9, measured=False),))
    write_run(folder, run)
    summarise(folder, run)
    assert without_data(recorded_step(folder)) == "the command ended within the warm-up"


def test_a_missing_or_damaged_summary_is_named(tmp_path: Path) -> None:
    file = step_in(tmp_path / "run") / SUMMARY_FILE
    problem = f"{file} has no summary of the measured phase"
    file.unlink()
    assert without_data(recorded_step(file.parent)) == problem
    for text in ("", "[]", "[1]", '{"a": 1}', '[{"name": 1}]', "[" * 100_000):
        file.write_text(text)
        assert without_data(recorded_step(file.parent)) == problem
