"""`casstat record` on a full disk: the command continues, and nothing that was recorded is lost."""

from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from cli.record import record_program, recorder
from cli.record.command import output_observers
from cli.runs.finish import finish
from collector.agents.fetching import Fetched, fetched
from collector.file_access import write_json
from collector.recording.journal_files import journal_files
from collector.runs import run_file
from collector.runs.run import RunCondition
from collector.runs.run_file import read_run
from tests.collector.fakes import file_size_limit
from tests.faults.fake_jolokia import FakeJolokia
from tests.faults.recorders import COMPLETE_RUN, names_in, processes_of, recorded, recover, recovery_hint, until_ticks
from tests.faults.recording_agent import Node


@contextmanager
def disk_full_after(writes: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Within the block, only the first `writes` writes of a run's file succeed; later ones fail as on a full disk."""
    remaining = iter(range(writes))

    def write_or_fail(path: Path, content: object) -> None:
        if next(remaining, None) is None:
            raise OSError(ENOSPC, "No space left on device", str(path))
        write_json(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(run_file, "write_json", write_or_fail)
        yield


@pytest.mark.usefixtures("without_summary")
@pytest.mark.parametrize("writes", range(4))
def test_nothing_that_was_recorded_is_lost_if_the_runs_file_cannot_be_written(
    writes: int, node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is written before and after the command, at the end of the run, and after the fetch."""
    folder = tmp_path / "run"
    with disk_full_after(writes, monkeypatch):
        code, _, errors = recorded(capfd, node.address, "-o", folder, "--", "sleep", "1.5")
    assert code == 125
    hint = f" {recovery_hint(folder)}" if writes else ""
    assert errors == f"casstat: {folder / 'run.json'}: No space left on device{hint}\n"
    if not writes:
        assert not folder.exists()
        return
    recover(folder)
    run = read_run(folder)
    assert run.end_s is not None
    assert [(node.folder, node.problem) for node in run.nodes] == [("nodes/n1", "")]
    assert names_in(folder / "nodes") == {"n1"}
    assert run.nodes[0].ticks


def test_the_journal_of_a_private_agent_is_kept_if_the_run_could_not_be_completed(
    fake: FakeJolokia, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    with disk_full_after(3, monkeypatch):
        code, _, errors = recorded(capfd, fake.url, "-o", folder, "--", "sh", "-c", until_ticks(3, fake, tmp_path))
    assert code == 125
    assert f"\ncasstat: {folder / 'run.json'}: No space left on device (hint: " in errors
    assert not processes_of(str(folder))
    assert list(journal_files(folder / ".agents"))
    recover(folder)
    (node,) = read_run(folder).nodes
    assert (node.problem, node.journal) == ("", "")
    assert node.ticks >= 2
    assert names_in(folder) == COMPLETE_RUN


def test_a_disk_that_is_full_during_the_fetch_leaves_a_run_that_can_be_recovered(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"

    def limited(*arguments: Any, **options: Any) -> Fetched:
        with file_size_limit(100):
            return fetched(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(recorder, "fetched", limited)
        arguments = (node.address, "--fail-if", "reads < 0", "-o", folder, "--", "sleep", "3.5")
        code, _, errors = recorded(capfd, *arguments)
    assert code == 125
    assert errors.endswith(f": File too large {recovery_hint(folder)}\n")
    assert read_run(folder).conditions == (RunCondition("reads < 0"),)
    recover(folder)
    assert (folder / "summary.json").exists()
    assert read_run(folder).conditions == (RunCondition("reads < 0", met=False),)


def test_without_space_for_a_summary_the_recordings_and_the_status_of_the_command_are_kept(
    node: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"

    def limited(*arguments: Any, **options: Any) -> bool:
        with file_size_limit(1):
            return finish(*arguments, **options)

    monkeypatch.setattr(record_program, "finish", limited)
    # With `capfd`, the limit would also apply to the files that capture the output.
    code = main(["record", node.address, "-o", str(folder), "--", "sh", "-c", "sleep 1.5; exit 3"])
    errors = capsys.readouterr().err
    assert code == 3
    assert f"casstat: {folder}: File too large\n" in errors
    assert "Traceback" not in errors
    assert errors.endswith(f"{folder}\n")
    assert not (folder / "summary.json").exists()
    assert read_run(folder).nodes[0].problem == ""


@pytest.mark.usefixtures("without_summary")
def test_a_log_and_marks_that_cannot_be_written_are_reported_and_the_command_continues(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path, _: str) -> None:
        raise OSError(ENOSPC, "No space left on device", str(folder / "marks.jsonl"))

    monkeypatch.setattr(output_observers, "LOG_FILE", "/dev/full")
    monkeypatch.setattr(output_observers, "append_mark", full)
    script = "echo level 1; yes | head -c 100000; exit 3"
    arguments = (node.address, "--mark-regex", "level .", "-o", tmp_path / "run", "--", "sh", "-c", script)
    code, out, errors = recorded(capfd, *arguments)
    assert (code, len(out)) == (3, len("level 1\n") + 100000)
    assert errors.splitlines() == [
        f"casstat: {tmp_path / 'run' / 'marks.jsonl'}: cannot write the mark: No space left on device",
        "casstat: /dev/full: the command's output is incomplete: No space left on device",
    ]
