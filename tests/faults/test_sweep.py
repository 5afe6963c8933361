"""`casstat sweep` loses at most the running combination, whatever ends it, and continues where it stopped."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.experiments import sweep_program
from cli.main import main
from cli.record.record_program import Around, RecordedRun, RecordSettings, recorded_run
from collector.runs.parameter_sweep import read_sweep
from collector.runs.run_file import read_run
from tests.faults.recording_agent import Node
from tests.faults.swept_node import OPS_PER_S, swept_node
from tests.faults.terminal import ControllingTerminal
from tests.waiting import eventually

SCRIPT = 'echo "$CASSTAT_RUN" >> {log}; sleep 60'
OPTIONS = ("-q", "--no-report", "--duration", "2s")
RUNS_S = 90.0


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with swept_node(tmp_path / "journal") as served:
        yield served


def arguments(node: Node, folder: Path, *options: str, script: str = SCRIPT) -> list[str]:
    """Return a command line with 2 x 1 combinations; the command writes each run's name to a file beside `folder`."""
    words = ["sh", "-c", script.replace("{log}", str(log_of(folder))) + "; : {batch}", "load", "{c}"]
    parameters = ("-P", "c=1,2", "-P", "batch=10")
    return ["sweep", node.address, "-o", str(folder), *parameters, *OPTIONS, *options, "--", *words]


def log_of(folder: Path) -> Path:
    return folder.with_suffix(".log")


def begun(folder: Path) -> list[str]:
    """Return the names of the runs whose commands have begun."""
    return log_of(folder).read_text().splitlines() if log_of(folder).exists() else []


def started(words: list[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "cli", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def rows(folder: Path) -> list[dict[str, Any]]:
    content: dict[str, Any] = json.loads((folder / "results.json").read_text())
    table_rows: list[dict[str, Any]] = content["rows"]
    return table_rows


def failures(node: Node, folder: Path, capfd: pytest.CaptureFixture[str], *options: str, script: str = SCRIPT) -> str:
    """Run a sweep that fails; return its messages."""
    code = main(arguments(node, folder, *options, script=script))
    errors = capfd.readouterr().err
    assert code == 1, errors
    assert "Traceback" not in errors
    return errors


def test_a_sweep_that_is_killed_twice_and_resumed_has_the_rows_of_an_uninterrupted_one(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert main(arguments(node, whole, "--repeat", "2")) == 0
    for runs_begun, resume in ((2, ()), (4, ("--resume",))):
        with started(arguments(node, killed, "--repeat", "2", *resume)) as process:
            eventually(lambda count=runs_begun: len(begun(killed)) == count, RUNS_S)  # type: ignore[misc]
            process.kill()
    order = read_sweep(killed).order_seed
    # The first run of each attempt ended, and the second one was killed.
    assert len(read_sweep(killed).runs) == 2
    assert [row["runs"] + row["missing"] for row in rows(killed)] == [2, 2]
    capfd.readouterr()
    assert main(arguments(node, killed, "--repeat", "2", "--resume")) == 0
    errors = capfd.readouterr().err
    assert errors.count("did not end; it will be repeated, and its files are in") == 1
    assert "[3/4] " in errors
    assert rows(killed) == rows(whole)
    for row in rows(killed):
        assert row["ops_per_s"] == pytest.approx(OPS_PER_S, rel=0.01)
        assert (row["runs"], row["failed"], row["missing"], row["errors"]) == (2, 0, 0, 0)
    sweep = read_sweep(killed)
    assert sweep.order_seed == order
    assert {path.name for path in (killed / "runs").iterdir()} == {Path(run.folder).name for run in sweep.runs}
    # Each attempt repeats the run that was killed, and then goes on.
    names = begun(killed)
    assert (names[1], names[3]) == (names[2], names[4])
    assert set(names) == set(begun(whole))
    assert len(list((killed / "unfinished").iterdir())) == 2
    for run in sweep.runs:
        assert main(["report", str(killed / run.folder)]) == 0


def test_ctrl_c_leaves_a_table_and_the_sweep_can_be_continued(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "sweep"
    with started(arguments(node, folder)) as process:
        eventually(lambda: len(begun(folder)) == 2, RUNS_S)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=RUNS_S)
    assert process.returncode == 130, errors
    assert f"interrupted after 1 of 2 runs (hint: continue with --resume -o {folder})" in errors
    assert sorted(row["runs"] for row in rows(folder)) == [0, 1]
    assert sorted(row["missing"] for row in rows(folder)) == [0, 1]
    assert "1 of 1 runs missing" in (folder / "results.md").read_text()
    assert main(arguments(node, folder, "--resume")) == 0
    assert [row["runs"] for row in rows(folder)] == [1, 1]
    # Nothing is left to do, and another repeat can be added.
    capfd.readouterr()
    assert main(arguments(node, folder, "--resume")) == 0
    assert "2 runs, 0 to do" in capfd.readouterr().err
    assert main(arguments(node, folder, "--resume", "--repeat", "2")) == 0
    assert [row["runs"] for row in rows(folder)] == [2, 2]
    assert "4 runs, 2 to do, in random order" in capfd.readouterr().err


def test_ctrl_c_on_a_terminal_ends_the_sweep_and_not_only_the_run(node: Node, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    # Without `exec`, a Ctrl-C while the shell starts `sleep` may reach only the shell, which then continues.
    with ControllingTerminal(
        100, *arguments(node, folder, "--duration", "60s", script="echo ready; exec sleep 60")
    ) as terminal:
        terminal.read_until("ready")
        terminal.type("\x03")
        code, _ = terminal.end(None)
    assert code == 130
    assert "interrupted after 0 of 2 runs" in terminal.text
    assert read_sweep(folder).runs == ()


def test_failed_combinations_are_rows_with_the_reason(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "sweep"
    errors = failures(node, folder, capfd, "--order", "given", script='test "$1" = 2 && exec sleep 60; exit 7')
    assert "c=1 batch=10: the command failed with exit status 7" in errors
    first, second = rows(folder)
    assert (first["runs"], first["failed"]) == (0, 1)
    assert first["problem"] == "the command failed with exit status 7"
    assert first["ops_per_s"] is None
    assert (second["runs"], second["failed"], second["best"]) == (1, 0, True)
    assert read_run(folder / read_sweep(folder).runs[0].folder).tags == {"c": "1", "batch": "10", "repeat": "1"}


def test_a_failing_command_before_a_run_makes_it_fail_and_the_command_after_it_runs(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, log = tmp_path / "sweep", tmp_path / "beside.log"
    check = tmp_path / "check"
    check.write_text(f'#!/bin/sh\necho "$1 $2 $3" >> {log}; test "$1" != before || test "$2" = 2\n')
    check.chmod(0o755)
    options = ("--before", f"{check} before {{c}} 'x y'", "--after", f"{check} after {{c}}", "--order", "given")
    errors = failures(node, folder, capfd, *options)
    assert "c=1 batch=10: --before: exit status 1" in errors
    assert log.read_text().splitlines() == ["before 1 x y", "after 1 ", "before 2 x y", "after 2 "]
    assert [row["problem"] for row in rows(folder)] == ["--before: exit status 1", None]
    assert len(begun(folder)) == 1


def test_a_sweep_continues_if_no_node_can_be_recorded_any_more(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "sweep"
    settings: list[RecordSettings] = []

    def recorded(wanted: RecordSettings, around: Around) -> RecordedRun:
        settings.append(wanted)
        return recorded_run(wanted if len(settings) == 1 else replace(wanted, nodes=("127.0.0.1:1",)), around)

    monkeypatch.setattr(sweep_program, "recorded_run", recorded)
    errors = failures(node, folder, capfd)
    assert "[2/2]" in errors
    assert "no node can be recorded" in errors
    assert sorted(row["failed"] for row in rows(folder)) == [0, 1]


def test_a_sweep_without_a_node_ends_before_anything_is_printed_or_created(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], refusing_url: str
) -> None:
    folder = tmp_path / "sweep"
    address = refusing_url.removeprefix("http://").removesuffix("/jolokia")
    for seed, code, message in (
        (["--seed", refusing_url], 2, "--seed takes the address of an agent"),
        (["--seed", address], 1, "no seed answered"),
        ([address], 1, "no node can be recorded"),
    ):
        assert main(["sweep", *seed, "-P", "c=1,2", "-o", str(folder), "--", "sh", "-c", ": {c}"]) == code
        printed, errors = capfd.readouterr()
        assert message in errors
        assert "2 runs" not in printed + errors
        assert not folder.exists()


def test_two_sweeps_in_one_directory_are_refused(node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "sweep"
    with started(arguments(node, folder)) as process:
        eventually(lambda: bool(begun(folder)), RUNS_S)
        assert f"{folder}: another process is running this sweep" in failures(node, folder, capfd, "--resume")
        process.kill()
    assert f"{folder}: already contains a sweep (hint: continue it with --resume)" in failures(node, folder, capfd)


def test_another_sweep_is_not_resumed(node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "sweep"
    assert f"{folder}: there is no sweep to resume" in failures(node, folder, capfd, "--resume")
    with started(arguments(node, folder)) as process:
        eventually(lambda: bool(begun(folder)), RUNS_S)
        process.kill()
    errors = failures(node, folder, capfd, "--resume", "-P", "d=1", "--warm-up", "1s", script="true {d}")
    assert "its parameters are c=1,2 batch=10 instead of c=1,2 batch=10 d=1; its command is 'sh -c " in errors
    assert "its warm-up is 0 s instead of 1 s" in errors
    assert len(errors.splitlines()) == 1
    (folder / "sweep.json").write_text("{")
    assert f"{folder}/sweep.json: not JSON" in failures(node, folder, capfd, "--resume")
    assert not (folder / "unfinished").exists()


def test_a_directory_with_other_files_is_refused(node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / "file").touch()
    assert "already exists (hint: choose another directory with -o)" in failures(node, tmp_path / "sweep", capfd)
