"""A sweep whose runs have all ended is resumed with other items per operation: only its results change."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.experiments.sweep_program import new_sweep
from cli.experiments.sweep_results import VALUES_FILE
from cli.experiments.sweep_settings import SweepOptions, parameters_of
from cli.main import main
from cli.record.record_program import RecordSettings
from cli.run_folder import run_folder_name
from cli.runs.run_summary import SUMMARY_FILE
from collector.runs.parameter_sweep import FILE, SweepRun, read_sweep, write_sweep
from exporters.results.sweep.sweep_rows import content_of_values
from tests.exporters.results.sweep.swept import client_run

NODE, COMMAND = "127.0.0.1:8778", ("true", "{c}", "{batch}")
PARAMETERS = ("c=1,2", "batch=1,100")
RATES = {("1", "1"): 500.0, ("1", "100"): 30.0, ("2", "1"): 900.0, ("2", "100"): 25.0}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the directory of a sweep of an earlier version, whose runs have ended."""
    path = tmp_path / "sweep"
    options = SweepOptions(RecordSettings(COMMAND, nodes=(NODE,)), parameters_of(PARAMETERS))
    sweep = new_sweep(options, 0.0)
    runs = []
    for number, values in enumerate(sweep.combinations(), 1):
        run = run_folder_name(number, len(RATES), values, 1)
        (path / run).mkdir(parents=True)
        (path / run / SUMMARY_FILE).touch()
        content = content_of_values(client_run(RATES[values["c"], values["batch"]]))
        (path / run / VALUES_FILE).write_text(json.dumps(content))
        runs.append(SweepRun(run, 0.0, 1.0))
    write_sweep(path, replace(sweep, runs=tuple(runs)))
    file = json.loads((path / FILE).read_text())
    del file["items_per_op"]
    (path / FILE).write_text(json.dumps(file))
    return path


def resumed(folder: Path, *options: str) -> dict[str, Any]:
    """Resume the sweep and return its results."""
    parameters = [word for text in PARAMETERS for word in ("-P", text)]
    assert main(["sweep", NODE, "-o", str(folder), "--resume", *parameters, *options, "--", *COMMAND]) == 0
    content: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return content


def best(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    (parameters,) = (row["parameters"] for row in rows if row["best"])
    return dict(parameters)


@pytest.mark.usefixtures("undrawn")
def test_items_per_operation_may_be_added_and_omitted(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = resumed(folder)
    assert best(before["rows"]) == {"c": "2", "batch": "1"}
    assert "items_per_s" not in before["rows"][0]
    capfd.readouterr()
    content = resumed(folder, "--items-per-op", "batch")
    errors = capfd.readouterr().err
    assert "4 runs, 0 to do" in errors
    assert "load generator: true" in (folder / "results.md").read_text()
    assert "Best: c=1, batch=100, 3,000 items/s" in errors
    assert [row["items_per_s"] for row in content["rows"]] == [500, 3000, 900, 2500]
    assert best(content["rows"]) == {"c": "1", "batch": "100"}
    assert "items/s" in (folder / "plots" / "heatmap_c_batch.gp").read_text()
    assert read_sweep(folder).items_per_op == "batch"
    assert best(resumed(folder, "--items-per-op", "c")["rows"]) == {"c": "2", "batch": "1"}
    assert read_sweep(folder).items_per_op == "c"
    assert resumed(folder) == before
    assert read_sweep(folder).items_per_op == ""


@pytest.mark.parametrize("words", [1, 60])
def test_another_command_is_refused_wherever_it_differs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], words: int
) -> None:
    equal = ["word"] * words
    options = SweepOptions(RecordSettings(("true", "{c}", *equal, "one"), nodes=(NODE,)), parameters_of(("c=1,2",)))
    write_sweep(tmp_path, new_sweep(options, 0.0))
    arguments = ["sweep", NODE, "-o", str(tmp_path), "--resume", "-P", "c=1,2", "--", "true", "{c}", *equal, "two"]
    assert main(arguments) == 1
    error = capfd.readouterr().err
    assert re.search("its command is .*one' instead of .*two'", error)
