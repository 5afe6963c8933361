"""RunStore: runs survive a restart, changes become events of the next tick, and ended runs do not change."""

import json
import re
from pathlib import Path

import pytest

from cli.agent.run_store import (
    LEFT_BYTES,
    MAX_BYTES,
    MAX_EVENTS,
    MAX_RUN_BYTES,
    SHOWN,
    SHOWN_MARKS,
    RunStore,
)
from collector.agents.run_records import FILE, Run
from exporters.api.endpoint import TooManyChangesError
from tests.collector.fakes import FakeClock, file_size_limit

LONG = "\N{FIRE}" * 1000


def test_a_run_and_its_marks_survive_a_restart(tmp_path: Path) -> None:
    clock = FakeClock(1_795_000_000.0)
    runs = RunStore(tmp_path, clock, pytest.fail)
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
    assert RunStore(tmp_path, clock, pytest.fail).all_runs() == runs.all_runs()
    assert [run["name"] for run in runs.all_runs()] == ["ramp é", "second"]


def test_only_the_latest_runs_and_marks_are_exported(tmp_path: Path) -> None:
    runs = RunStore(tmp_path, FakeClock(1_795_000_000.0), pytest.fail)
    begun = [runs.begin(f"run {number}") for number in range(SHOWN + 2)]
    for number in range(SHOWN_MARKS + 2):
        runs.mark(begun[-1]["id"], f"mark {number}")
    times = runs.times()
    assert [exported.name for exported in times] == [run["name"] for run in begun[2:]]
    assert [text for _, text in times[-1].marks] == [f"mark {number}" for number in range(2, SHOWN_MARKS + 2)]


def test_each_change_is_one_event_of_the_next_tick(tmp_path: Path) -> None:
    runs = RunStore(tmp_path, FakeClock(1_795_000_000.0), pytest.fail)
    run = runs.begin("ramp")
    runs.mark(run["id"], "more")
    runs.end(run["id"])
    assert [(event.kind, event.text, event.time_s) for event in runs.read(1.0).events] == [
        ("run", "run ramp began", 1_795_000_000.0),
        ("run", "run ramp: more", 1_795_000_000.0),
        ("run", "run ramp ended", 1_795_000_000.0),
    ]
    assert runs.read(1.0).events == ()


def test_an_unknown_or_ended_run_cannot_be_marked_or_ended(tmp_path: Path) -> None:
    runs = RunStore(tmp_path, FakeClock(), pytest.fail)
    run = runs.begin("ramp")
    runs.end(run["id"])
    with pytest.raises(ValueError, match="the run ramp has ended"):
        runs.mark(run["id"], "late")
    with pytest.raises(ValueError, match="has ended"):
        runs.end(run["id"])
    with pytest.raises(KeyError):
        runs.end("none")
    assert len(runs.all_runs()[0]["marks"]) == 0


def test_malformed_lines_are_counted_and_skipped(tmp_path: Path) -> None:
    log_lines: list[str] = []
    RunStore(tmp_path, FakeClock(), pytest.fail).begin("ramp")
    with (tmp_path / FILE).open("a") as file:
        file.write('{"run": "x", "mark_s": 1, "text": "of nobody"}\n[]\n{\nnull\n{"run": "y", "begin_s": "soon"}\n')
        file.write(f'{{"run": "z", "begin_s": 1{"0" * 400}, "name": "late"}}\n{{"ru')
    assert [run["name"] for run in RunStore(tmp_path, FakeClock(), log_lines.append).all_runs()] == ["ramp"]
    assert log_lines == [f"{tmp_path / FILE}: skipped 7 malformed lines"]
    RunStore(tmp_path, FakeClock(), lambda _: None).begin("second")
    assert [run["name"] for run in RunStore(tmp_path, FakeClock(), log_lines.append).all_runs()] == ["ramp", "second"]


def test_a_change_that_cannot_be_written_is_not_made(tmp_path: Path) -> None:
    runs = RunStore(tmp_path, FakeClock(), pytest.fail)
    runs.begin("first")
    size = (tmp_path / FILE).stat().st_size
    with file_size_limit(size + 10), pytest.raises(OSError, match=r"space|large"):
        runs.begin("second")
    assert (tmp_path / FILE).stat().st_size == size
    assert len(runs.all_runs()) == 1
    assert len(runs.read(1.0).events) == 1


@pytest.fixture(autouse=True)
def _fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fdatasync", lambda _: None)


def size_of(runs: list[Run]) -> int:
    return len(json.dumps(runs, ensure_ascii=False).encode())


def fill(runs: RunStore, identifier: str, marks: int = 10_000) -> int:
    """Add up to `marks` marks to a run, until it is full; return the number of marks added."""
    for number in range(marks):
        if number % MAX_EVENTS == 0:
            runs.read(1.0)
        try:
            runs.mark(identifier, LONG)
        except ValueError:
            return number
    return marks


def test_a_full_run_rejects_marks_and_can_end(tmp_path: Path) -> None:
    runs = RunStore(tmp_path, FakeClock(), pytest.fail)
    run = runs.begin("ramp")
    marks = fill(runs, run["id"])
    assert 200 < marks < 300
    assert size_of(runs.all_runs()) <= MAX_RUN_BYTES
    with pytest.raises(ValueError, match="the run has no room for more marks"):
        runs.mark(run["id"], LONG)
    assert len(runs.end(run["id"])["marks"]) == marks


def test_the_total_size_is_bounded_and_the_oldest_ended_runs_are_dropped_first(tmp_path: Path) -> None:
    log_lines: list[str] = []
    runs = RunStore(tmp_path, FakeClock(), log_lines.append)
    active = runs.begin("active")
    for number in range(6):
        run = runs.begin(f"run {number}")
        fill(runs, run["id"])
        runs.end(run["id"])
        assert (tmp_path / FILE).stat().st_size <= MAX_BYTES
        assert size_of(runs.all_runs()) <= MAX_BYTES
    names = [run["name"] for run in runs.all_runs()]
    assert 3 <= len(names) <= 5
    assert names == ["active", *[f"run {number}" for number in range(7 - len(names), 6)]]
    assert re.search(r": deleted \d old runs? \(limit 4 MiB\)$", log_lines[0])
    assert RunStore(tmp_path, FakeClock(), pytest.fail).all_runs() == runs.all_runs()
    assert runs.end(active["id"])["end_s"]


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> int:
    """The maximum size of the file is a quarter of the usual one; return it."""
    monkeypatch.setattr("cli.agent.run_store.MAX_BYTES", MAX_BYTES // 4)
    monkeypatch.setattr("cli.agent.run_store.LEFT_BYTES", LEFT_BYTES // 4)
    return MAX_BYTES // 4


def test_the_number_of_short_runs_is_bounded(tmp_path: Path, small_limit: int) -> None:
    content = "".join(f'{{"run": "{number}", "begin_s": 1, "name": "x"}}\n' for number in range(4250))
    (tmp_path / FILE).write_text(content)
    runs = RunStore(tmp_path, FakeClock(), lambda _: None)
    assert 2500 < len(runs.all_runs()) < 4250
    assert runs.all_runs()[-1]["id"] == "4249"
    runs.begin("one more")
    assert (tmp_path / FILE).stat().st_size <= small_limit


def test_changes_waiting_for_the_next_tick_are_bounded(tmp_path: Path) -> None:
    runs = RunStore(tmp_path, FakeClock(), pytest.fail)
    run = runs.begin("ramp")
    for _ in range(MAX_EVENTS - 1):
        runs.mark(run["id"], "x")
    with pytest.raises(TooManyChangesError, match="1000 changes are waiting for the next tick"):
        runs.mark(run["id"], "x")
    assert len(runs.read(1.0).events) == MAX_EVENTS
    runs.mark(run["id"], "x")


def test_the_end_of_a_huge_file_is_read_and_the_file_is_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_lines: list[str] = []
    monkeypatch.setattr("cli.agent.run_store.MAX_READ_BYTES", 6 << 20)
    with (tmp_path / FILE).open("wb") as file:
        # The file begins with zeros without a newline; most of them are never read.
        file.truncate(12 << 20)
        file.seek(0, 2)
        file.write(b'\n{"run": "a", "begin_s": 1, "name": "kept"}\n')
        for number in range(1200):
            mark = {"run": "a", "mark_s": number, "text": LONG}
            file.write(json.dumps(mark, ensure_ascii=False).encode() + b"\n")
    runs = RunStore(tmp_path, FakeClock(), log_lines.append)
    assert [run["name"] for run in runs.all_runs()] == ["kept"]
    assert size_of(runs.all_runs()) <= MAX_RUN_BYTES
    assert (tmp_path / FILE).stat().st_size <= MAX_RUN_BYTES
    assert len(log_lines) == 2
    assert RunStore(tmp_path, FakeClock(), pytest.fail).all_runs() == runs.all_runs()


def test_a_failed_compaction_is_retried_with_the_next_run(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"\0" * (MAX_BYTES + 1))
    (tmp_path / f".{FILE}.new").mkdir()
    runs = RunStore(tmp_path, FakeClock(), lambda _: None)
    with pytest.raises(IsADirectoryError):
        runs.begin("ramp")
    assert runs.all_runs() == []
    (tmp_path / f".{FILE}.new").rmdir()
    runs.begin("ramp")
    assert (tmp_path / FILE).stat().st_size < 1000


def test_a_run_ends_when_its_lease_is_not_renewed(tmp_path: Path) -> None:
    clock = FakeClock(1_795_000_000.0)
    runs = RunStore(tmp_path, clock, pytest.fail)
    leased, free = runs.begin("leased", 30.0), runs.begin("free")
    for _ in range(3):
        clock.busy(29)
        runs.renew(leased["id"])
        runs.read(1.0)
    clock.busy(31)
    (event,) = runs.read(1.0).events
    assert event.text == "run leased ended because its lease expired"
    assert [run["end_s"] for run in runs.all_runs()] == [1_795_000_118.0, None]
    with pytest.raises(ValueError, match="has ended"):
        runs.renew(leased["id"])
    clock.busy(10_000)
    assert runs.read(1.0).events == ()
    assert runs.end(free["id"])["end_s"] == 1_795_010_118.0


def test_after_a_restart_a_client_has_a_full_lease_to_renew_it(tmp_path: Path) -> None:
    clock = FakeClock(1_795_000_000.0)
    run = RunStore(tmp_path, clock, pytest.fail).begin("leased", 30.0)
    clock.busy(3600)
    runs = RunStore(tmp_path, clock, pytest.fail)
    clock.busy(29)
    assert runs.read(1.0).events == ()
    assert runs.renew(run["id"])["end_s"] is None
    clock.busy(31)
    assert len(runs.read(1.0).events) == 1


def test_an_expired_lease_is_ended_once_the_disk_has_space(tmp_path: Path) -> None:
    clock = FakeClock(1_795_000_000.0)
    runs = RunStore(tmp_path, clock, pytest.fail)
    runs.begin("leased", 30.0)
    runs.read(1.0)
    clock.busy(31)
    with file_size_limit(1):
        assert runs.read(1.0).events == ()
    assert runs.all_runs()[0]["end_s"] is None
    assert len(runs.read(1.0).events) == 1


def leased_runs(folder: Path, count: int) -> None:
    lines = (f'{{"run": "{number}", "begin_s": 1, "name": "x", "lease_s": 30}}\n' for number in range(count))
    (folder / FILE).write_text("".join(lines))


def test_runs_that_are_deleted_to_make_room_while_leases_expire_stay_deleted(tmp_path: Path, small_limit: int) -> None:
    clock = FakeClock(1_795_000_000.0)
    # Fill the file with runs, so that some must be deleted to make room for the ends of the others.
    leased_runs(tmp_path, small_limit // 256)
    runs = RunStore(tmp_path, clock, lambda _: None)
    clock.busy(31)
    while runs.read(1.0).events:
        assert (tmp_path / FILE).stat().st_size <= small_limit
    assert all(run["end_s"] for run in runs.all_runs())
    # Every line belongs to a run that is kept.
    assert RunStore(tmp_path, clock, pytest.fail).all_runs() == runs.all_runs()


def test_leases_that_expire_in_the_same_tick_are_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock(1_795_000_000.0)
    leased_runs(tmp_path, MAX_EVENTS + 1)
    runs = RunStore(tmp_path, clock, pytest.fail)
    writes: list[int] = []
    monkeypatch.setattr("os.fdatasync", writes.append)
    clock.busy(31)
    assert [len(runs.read(1.0).events) for _ in range(3)] == [MAX_EVENTS, 1, 0]
    assert len(writes) == 2
