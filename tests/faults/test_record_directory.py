"""`casstat record` never shares a run directory, and deletes nothing that it did not create."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cli import run_folder
from cli.run_folder import LOCK_FILE, is_being_recorded, recording
from tests.faults.recorders import names_in, recorded
from tests.faults.recording_agent import HOST, Node


@pytest.mark.parametrize("files", [(), (".agents/1/agent.log",), ("run.json", "nodes/n1/a.jsonl.zst")])
def test_a_second_recorder_with_the_same_directory_fails_and_deletes_nothing(
    files: tuple[str, ...], node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    with recording(folder):
        for file in files:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).touch()
        before = sorted(folder.rglob("*"))
        code, _, errors = recorded(capfd, node.address, "-o", folder, "--", "true")
        assert code == 125
        assert errors.startswith(f"casstat: {folder}: ")
        assert ("another process is recording this run" in errors) == (not files)
        assert sorted(folder.rglob("*")) == before
    assert node.agent.known == {}


def test_a_recorder_that_finds_another_run_after_it_has_taken_the_lock_deletes_nothing(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"

    def created(folder: Path) -> bool:
        """Create the directory with a file, as if another recorder had started and ended in the meantime."""
        folder.mkdir()
        (folder / "file").touch()
        return True

    monkeypatch.setattr(run_folder, "create", created)
    code, _, errors = recorded(capfd, node.address, "-o", folder, "--", "true")
    assert (code, errors) == (125, f"casstat: {folder}: already exists (hint: choose another directory with -o)\n")
    assert (folder / "file").exists()


def test_a_directory_that_existed_before_is_kept_if_no_run_begins(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    code, _, errors = recorded(capfd, f"{HOST}:1", "-o", folder, "--", "true")
    assert code == 125
    assert "no node can be recorded" in errors
    assert names_in(folder) <= {LOCK_FILE}


@pytest.mark.usefixtures("without_summary")
def test_the_lock_is_held_from_the_first_request_to_the_last(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    describe, held = node.agent.node, []

    def observed() -> Mapping[str, Any]:
        held.append(is_being_recorded(folder))
        return describe()

    monkeypatch.setattr(node.agent, "node", observed)
    assert recorded(capfd, node.address, "-o", folder, "--", "true")[0] == 0
    assert len(held) >= 3
    assert all(held)
    assert not is_being_recorded(folder)
