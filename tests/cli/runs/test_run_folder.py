"""A run's directory: its name, its lock, and which run `casstat mark` marks."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from cli.errors import CasstatError
from cli.run_folder import (
    FOLDER_VARIABLE,
    LOCK_FILE,
    RUNS_FOLDER,
    create,
    default_folder,
    is_being_recorded,
    last_alive_s,
    recording,
    require_empty,
    show_alive,
)
from cli.runs.marks_file import active_run
from collector.runs.run import Run
from collector.runs.run_file import write_run

RUN = Run("r", 0.0, None, "1")


@pytest.fixture(autouse=True)
def in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)


def run_at(name: str) -> Path:
    folder = RUNS_FOLDER / name
    create(folder)
    write_run(folder, RUN)
    return folder


def test_the_only_active_run_is_found() -> None:
    first, second = run_at("a"), run_at("b")
    with pytest.raises(CasstatError, match="no run is being recorded"):
        active_run(None)
    with recording(second):
        assert active_run(None) == second
        with recording(first), pytest.raises(CasstatError, match="several runs are being recorded: a, b"):
            active_run(None)
    with pytest.raises(CasstatError, match="no run is being recorded"):
        active_run(None)


def test_a_given_run_must_be_active(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = run_at("a")
    with pytest.raises(CasstatError, match="the run is not being recorded"):
        active_run(folder)
    with pytest.raises(CasstatError, match="not a run directory"):
        active_run(Path())
    with recording(folder):
        assert active_run(folder) == folder
        monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
        with recording(run_at("b")):
            assert active_run(None) == folder
        with pytest.raises(CasstatError, match="another process is recording this run"), recording(folder):
            pass


def test_a_directory_with_files_is_not_used() -> None:
    folder = run_at("a")
    with pytest.raises(CasstatError, match="already exists"):
        create(folder)
    with recording(folder), pytest.raises(CasstatError, match="already exists"):
        require_empty(folder)


def test_a_directory_is_new_for_the_recorder_that_creates_it() -> None:
    folder = Path("deep/run")
    assert create(folder)
    assert not create(folder)
    with recording(folder):
        assert not create(folder)
        require_empty(folder)
    Path("file").touch()
    for path in (Path("file"), Path("file/run")):
        with pytest.raises(CasstatError, match="Not a directory"):
            create(path)


def test_all_users_can_see_that_a_run_is_being_recorded() -> None:
    folder = run_at("a")
    before = os.umask(0o022)
    try:
        with recording(folder):
            assert (folder / LOCK_FILE).stat().st_mode & 0o777 == 0o644
            assert is_being_recorded(folder)
    finally:
        os.umask(before)
    assert not is_being_recorded(folder)


def test_an_error_in_a_recorder_is_not_mistaken_for_a_lock_that_is_held() -> None:
    folder = run_at("a")
    with pytest.raises(BlockingIOError), recording(folder):
        raise BlockingIOError
    assert not is_being_recorded(folder)


def test_the_lock_of_a_recorder_that_died_shows_when_it_was_last_alive() -> None:
    folder = run_at("a")
    assert last_alive_s(folder) is None
    show_alive(folder, 1000.0)
    with suppress(KeyboardInterrupt), recording(folder):
        show_alive(folder, 1000.0)
        assert last_alive_s(folder) == 1000.0
        show_alive(folder, 1001.5)
        raise KeyboardInterrupt
    with suppress(KeyboardInterrupt), recording(folder):
        raise KeyboardInterrupt
    assert last_alive_s(folder) == 1001.5
    with recording(folder):
        pass
    assert last_alive_s(folder) is None


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("load", "-load"),
        ("a/../b c", "-a-..-b-c"),
        ("", ""),
        ("\x1b[31m", "-31m"),
        ("...", ""),
        ("x" * 99, "-" + "x" * 60),
    ],
)
def test_a_default_directory_is_in_the_directory_of_all_runs(name: str, suffix: str) -> None:
    folder = default_folder(name, 0.0)
    assert folder.parent == RUNS_FOLDER
    assert folder.name[15:] == suffix
