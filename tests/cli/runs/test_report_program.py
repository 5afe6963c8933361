"""`casstat report` writes the report of a run, and `import` updates it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from cli.errors import install_command
from cli.main import main
from cli.runs.finish import finish
from collector.runs.run import Run, RunCommand, RunCondition, RunNode, RunPhase
from collector.runs.run_file import read_run, write_run
from tests.cli.recordings.runs_with_settings import CLUSTER, VERSION, run_with_settings, settings
from tests.collector.merge.recorded_nodes import BEGIN_S, busy, record

TICKS = 40


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run with two nodes, one of them missing, in `tmp_path`/run."""
    folder = tmp_path / "run"
    record(folder / "nodes" / "n1", busy("n1", TICKS + 1))
    nodes = (RunNode("n1", "http://n1", "nodes/n1", TICKS, interval_s=1.0), RunNode("n2", "http://n2", problem="down"))
    command = RunCommand(("./load.sh",), BEGIN_S, BEGIN_S + TICKS, 0)
    phases = (RunPhase("main", BEGIN_S, BEGIN_S + TICKS),)
    run = Run("load", BEGIN_S, BEGIN_S + TICKS, "0.1.0", nodes=nodes, command=command, phases=phases)
    write_run(folder, run)
    return run


def test_the_report_is_written_to_the_run(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    assert main(["report", str(folder), "--cost-per-hour", "36", "--currency", "EUR"]) == 0
    assert capsys.readouterr().out.split() == [str(folder / "report.html"), str(folder / "report.md")]
    text = (folder / "report.md").read_text()
    assert "The command ./load.sh ended with exit status 0. 1 of 2 nodes served 10 reads/s" in text
    assert "**1 node missing: n2.**\n\n**n2: not recorded: down.**" in text
    assert "No samples were lost" not in text
    # The first tick has no rates.
    assert f"| server reads/s | {TICKS} s | 10 | 10 |" in text
    # 36 EUR buy 36,000 operations at 10 operations per second.
    assert "| main | server | 10 | 1,000.0000 |" in text
    assert "<figure" in (folder / "report.html").read_text()


def test_the_report_is_written_to_another_directory(run: Run, tmp_path: Path) -> None:
    assert main(["report", str(tmp_path / "run"), "-o", str(tmp_path / "a" / "b")]) == 0
    assert {path.name for path in (tmp_path / "a" / "b").iterdir()} == {"report.html", "report.md"}
    assert not (tmp_path / "run" / "report.html").exists()


def test_a_directory_without_a_run_has_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"casstat: {tmp_path}: not a run directory\n"


@pytest.mark.usefixtures("only_report")
def test_a_completed_run_has_a_report_unless_it_is_omitted(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    finish(folder, run, quiet=True, has_report=False)
    assert not (folder / "report.html").exists()
    finish(folder, run, quiet=True)
    assert (folder / "report.html").exists()


@pytest.mark.parametrize("has_report", [False, True])
def test_import_updates_only_an_existing_report(run: Run, tmp_path: Path, has_report: bool) -> None:
    folder, result = tmp_path / "run", tmp_path / "result.csv"
    rows = (f"{BEGIN_S + second},1,7,0" for second in range(1, 30))
    result.write_text("\n".join(["time_s,duration_s,operations,errors", *rows]) + "\n")
    if has_report:
        assert main(["report", str(folder)]) == 0
    assert main(["import", str(folder), str(result)]) == 0
    assert (folder / "report.md").exists() == has_report
    if has_report:
        assert "Clients completed 7 operations/s" in (folder / "report.md").read_text()


def test_a_report_lists_the_settings(tmp_path: Path) -> None:
    run_with_settings(tmp_path / "a", [settings(0)])
    assert main(["report", str(tmp_path / "a")]) == 0
    text = (tmp_path / "a" / "report.md").read_text()
    assert "| Cassandra version | 5.0.8 |" in text
    assert "| n0 | 5.0.8 |" in text
    assert "baseline" not in text


def test_a_report_states_which_settings_differ_from_the_baseline(tmp_path: Path) -> None:
    run_with_settings(tmp_path / "a", [settings(0)])
    run = run_with_settings(tmp_path / "b", [settings(0, **{VERSION: "4.1.9", CLUSTER: "other"})])
    write_run(tmp_path / "b", replace(run, casstat="0.2.0"))
    assert main(["report", str(tmp_path / "b"), "--baseline", str(tmp_path / "a")]) == 0
    text = (tmp_path / "b" / "report.md").read_text()
    assert "**Not comparable with the baseline a: the Cassandra version is 4.1.9 instead of 5.0.8.**" in text
    assert "| Cassandra version | 5.0.8 | 4.1.9 | yes, not comparable |" in text
    assert "| schema version | v1 | v1 | no |" in text
    assert "| casstat version | 0.1.0 | 0.2.0 | yes |" in text
    assert "| cluster name | c | other | yes |" in text


def test_a_run_with_other_differences_is_comparable_with_the_baseline(tmp_path: Path) -> None:
    run_with_settings(tmp_path / "a", [settings(0)])
    run_with_settings(tmp_path / "b", [settings(0, **{CLUSTER: "other"})])
    assert main(["report", str(tmp_path / "b"), "--baseline", str(tmp_path / "a")]) == 0
    text = (tmp_path / "b" / "report.md").read_text()
    assert "Not comparable" not in text
    names = "Cassandra version, schema version, number of nodes, distribution over racks"
    assert f"The same as in the baseline a: {names}." in text


def test_a_report_contains_the_comparison_with_the_baseline(tmp_path: Path) -> None:
    for name in ("a", "b"):
        run_with_settings(tmp_path / name, [settings(0)])
    run = read_run(tmp_path / "b")
    write_run(tmp_path / "b", replace(run, name="b", begin_s=BEGIN_S + 1))
    assert main(["report", str(tmp_path / "b"), "--baseline", str(tmp_path / "a")]) == 0
    text = (tmp_path / "b" / "report.md").read_text()
    assert "## Difference from the baseline" in text
    assert "The baseline is a; within-run variation only" in text
    assert "| reads\\_per\\_s | 10 | 10 | +0.0% |" in text


def test_a_report_requires_packages(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with without_analysis():
        assert main(["report", str(tmp_path / "run")]) == 1
    command = install_command("numpy", "orjson")
    assert capsys.readouterr().err == f"casstat: report requires numpy and orjson (hint: run '{command}')\n"


@pytest.mark.usefixtures("undrawn")
def test_a_run_that_is_recorded_without_the_packages_can_be_completed_later(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    before = {path.name for path in folder.iterdir()}
    with without_analysis():
        assert not finish(folder, run, quiet=False)
    assert {path.name for path in folder.iterdir()} == before
    steps = f"run '{install_command('numpy', 'orjson')}', then 'casstat fetch --recover {folder}'"
    problem = f"{folder}: tables, plots, summary and report require numpy and orjson (hint: {steps})"
    assert capsys.readouterr().err == f"casstat: {problem}\n{folder}\n"
    assert not finish(folder, run, quiet=True)
    assert {"merged", "report.html", "summary.json"} <= {path.name for path in folder.iterdir()}


def test_a_condition_is_met_if_there_is_no_summary_to_check_it(run: Run, tmp_path: Path) -> None:
    with without_analysis():
        assert finish(tmp_path / "run", replace(run, conditions=(RunCondition("read_p99_ms > 5"),)), quiet=False)


@contextmanager
def without_analysis() -> Iterator[None]:
    """In the block, casstat finds no optional package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cli.errors.find_spec", lambda _: None)
        yield


def test_a_report_is_written_if_the_runs_cannot_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        run = run_with_settings(tmp_path / name, [settings(0)])
        write_run(tmp_path / name, replace(run, phases=(RunPhase(name, BEGIN_S, BEGIN_S + 60),)))
    assert main(["report", str(tmp_path / "b"), "--baseline", str(tmp_path / "a")]) == 0
    assert capsys.readouterr().err.startswith("casstat: the runs have no phase in common")
    assert "**The runs cannot be compared.**" in (tmp_path / "b" / "report.md").read_text()


def test_a_baseline_that_is_not_a_run_is_an_error(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other").mkdir()
    assert main(["report", str(tmp_path / "run"), "--baseline", str(tmp_path / "other")]) == 1
    assert capsys.readouterr().err == f"casstat: {tmp_path}/other: not a run directory\n"


def test_the_exit_status_of_a_failed_command_is_stated_once(run: Run, tmp_path: Path) -> None:
    write_run(tmp_path / "run", replace(run, command=RunCommand(("./load.sh",), BEGIN_S, BEGIN_S + TICKS, 3)))
    assert main(["report", str(tmp_path / "run")]) == 0
    text = (tmp_path / "run" / "report.md").read_text()
    assert text.count("exit status") == 1
    assert "**The command ./load.sh failed with exit status 3.**\n\n1 of 2 nodes served 10 reads/s" in text
