"""Runs: what was begun is there after a restart, is an event in the next tick, and ends once."""

import resource
from pathlib import Path

import pytest

from cli.agent.runs import FILE, SHOWN, SHOWN_MARKS, Runs
from tests.collector.fakes import FakeClock


def test_a_run_with_its_marks_is_there_after_a_restart(tmp_path: Path) -> None:
    clock = FakeClock(1_795_000_000.0)
    runs = Runs(tmp_path, clock, pytest.fail)
    run = runs.begin("ramp é")
    clock.busy(10)
    runs.mark(run["id"], "100 clients")
    clock.busy(10)
    ended = runs.end(run["id"])
    assert ended == {
        "id": run["id"],
        "name": "ramp é",
        "begin_s": 1_795_000_000.0,
        "end_s": 1_795_000_020.0,
        "marks": [{"time_s": 1_795_000_010.0, "text": "100 clients"}],
    }
    runs.begin("second")
    assert Runs(tmp_path, clock, pytest.fail).every() == runs.every()
    assert [each["name"] for each in runs.every()] == ["ramp é", "second"]


def test_prometheus_is_told_of_the_last_runs(tmp_path: Path) -> None:
    runs = Runs(tmp_path, FakeClock(1_795_000_000.0), pytest.fail)
    begun = [runs.begin(f"run {number}") for number in range(SHOWN + 2)]
    for number in range(SHOWN_MARKS + 2):
        runs.mark(begun[-1]["id"], f"mark {number}")
    times = runs.times()
    assert [each.name for each in times] == [run["name"] for run in begun[2:]]
    assert [text for _, text in times[-1].marks] == [f"mark {number}" for number in range(2, SHOWN_MARKS + 2)]


def test_what_happens_is_an_event_of_the_next_tick_once(tmp_path: Path) -> None:
    runs = Runs(tmp_path, FakeClock(1_795_000_000.0), pytest.fail)
    run = runs.begin("ramp")
    runs.mark(run["id"], "more")
    runs.end(run["id"])
    assert [(event.kind, event.text, event.time_s) for event in runs.read(1.0).events] == [
        ("run", "run ramp began", 1_795_000_000.0),
        ("run", "run ramp: more", 1_795_000_000.0),
        ("run", "run ramp ended", 1_795_000_000.0),
    ]
    assert runs.read(1.0).events == ()


def test_a_run_that_is_not_there_or_has_ended_cannot_be_marked_or_ended(tmp_path: Path) -> None:
    runs = Runs(tmp_path, FakeClock(), pytest.fail)
    run = runs.begin("ramp")
    runs.end(run["id"])
    with pytest.raises(ValueError, match="the run ramp has ended"):
        runs.mark(run["id"], "late")
    with pytest.raises(ValueError, match="has ended"):
        runs.end(run["id"])
    with pytest.raises(KeyError):
        runs.end("none")
    assert len(runs.every()[0]["marks"]) == 0


def test_lines_that_tell_of_no_run_are_counted_and_left_out(tmp_path: Path) -> None:
    said: list[str] = []
    Runs(tmp_path, FakeClock(), pytest.fail).begin("ramp")
    with (tmp_path / FILE).open("a") as file:
        file.write('{"run": "x", "mark_s": 1, "text": "of nobody"}\n[]\n{\nnull\n{"run": "y", "begin_s": "soon"}\n{"ru')
    assert [run["name"] for run in Runs(tmp_path, FakeClock(), said.append).every()] == ["ramp"]
    assert said == [f"{tmp_path / FILE}: 6 lines tell of no run and are left out"]
    Runs(tmp_path, FakeClock(), lambda _: None).begin("second")
    assert [run["name"] for run in Runs(tmp_path, FakeClock(), said.append).every()] == ["ramp", "second"]


def test_what_cannot_be_kept_on_disk_did_not_happen(tmp_path: Path) -> None:
    runs = Runs(tmp_path, FakeClock(), pytest.fail)
    runs.begin("first")
    size = (tmp_path / FILE).stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, hard))
    try:
        with pytest.raises(OSError, match=r"space|large"):
            runs.begin("second")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / FILE).stat().st_size == size
    assert len(runs.every()) == 1
    assert len(runs.read(1.0).events) == 1
