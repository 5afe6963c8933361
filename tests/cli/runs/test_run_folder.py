"""The run to mark is the given one, that of the surrounding command, or the only one that is being recorded."""

from pathlib import Path

import pytest

from cli.errors import CasstatError
from cli.runs.run_folder import FOLDER_VARIABLE, RUNS_FOLDER, active_run, create, default_folder, recording
from collector.runs.run_file import Run, write_run

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
    with pytest.raises(CasstatError, match="not the directory of a run"):
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
def test_a_default_directory_is_below_that_of_all_runs(name: str, suffix: str) -> None:
    folder = default_folder(name, 0.0)
    assert folder.parent == RUNS_FOLDER
    assert folder.name[15:] == suffix
