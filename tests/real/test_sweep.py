"""A sweep on a real node is killed twice and resumed; its results agree with those of its runs."""

import json
import subprocess
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from cli.main import main
from collector.runs.run_file import read_run
from collector.runs.sweep_file import read_sweep
from tests.faults.agents import RunningAgent
from tests.real.conftest import StartNode
from tests.real.programs import PATIENCE_S, program
from tests.waiting import eventually

pytestmark = pytest.mark.beside
RATES, PAYLOADS, REPEATS = (50, 100, 200), (100, 1000), 2
# The generator makes up for operations that are late, and the driver's own queries also count as operations.
HIGHEST = 1.3
PARAMETERS = ("-P", f"rate={','.join(map(str, RATES))}", "-P", f"payload={','.join(map(str, PAYLOADS))}")
OPTIONS = ("--repeat", str(REPEATS), "--duration", "2.5s", "--warm-up", "1s", "-q", "--no-report")


def sweep_words(agent: str, folder: Path, address: str, *options: str) -> list[str | Path]:
    """Return the arguments of a sweep whose command notes the beginning of each run."""
    script = f'echo "$CASSTAT_RUN" >> {folder.with_suffix(".log")}; exec "$@"'
    load = (sys.executable, "-m", "cli.demo.load_generator", address, "--rate", "{rate}", "--payload", "{payload}")
    return ["sweep", agent, "-o", folder, *PARAMETERS, *OPTIONS, *options, "--", "sh", "-c", script, "sh", *load]


def runs_begun(folder: Path) -> int:
    log = folder.with_suffix(".log")
    return len(log.read_text().splitlines()) if log.exists() else 0


def rows(folder: Path) -> list[dict[str, Any]]:
    table_rows: list[dict[str, Any]] = json.loads((folder / "results.json").read_text())["rows"]
    return table_rows


def throughputs(folder: Path, parameters: dict[str, str]) -> list[float]:
    """Return the operations per second in the summaries of the runs with these parameters."""
    runs = [path for path in (folder / "runs").iterdir() if parameters.items() <= read_run(path).tags.items()]
    totals = [json.loads((path / "summary.json").read_text())[-1]["values"] for path in runs]
    return [values["reads_per_s"] + values["writes_per_s"] for values in totals]


def test_a_sweep_that_is_killed_twice_ends_with_all_rows(
    start_node: StartNode, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    node, folder = start_node("5.0.8"), tmp_path / "sweep"
    arguments = ("--jolokia", node.spec.jolokia_url, "--interval", "0.25")
    with RunningAgent(tmp_path / "journal", *arguments).wait_until_serving() as agent:
        for begun, options in ((3, ()), (6, ("--resume",))):
            words = program(*sweep_words(agent.base, folder, node.spec.address, *options))
            with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                eventually(lambda count=begun: runs_begun(folder) == count, PATIENCE_S)  # type: ignore[misc]
                process.kill()
        assert len(read_sweep(folder).runs) == 4
        words = program(*sweep_words(agent.base, folder, node.spec.address, "--resume"))
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    assert "12 runs, 8 to do" in done.stderr
    assert [tuple(row["parameters"].values()) for row in rows(folder)] == [
        (str(rate), str(payload)) for rate in RATES for payload in PAYLOADS
    ]
    for row in rows(folder):
        assert (row["runs"], row["failed"], row["missing"], row["errors"]) == (REPEATS, 0, 0, 0)
        # On a busy machine, the generator may begin after the warm-up, so there is no other lower limit.
        assert 0 < row["ops_per_s"] <= HIGHEST * int(row["parameters"]["rate"])
        assert row["ops_per_s"] == pytest.approx(fmean(throughputs(folder, row["parameters"])), rel=0.001)
        assert row["ops_per_s_low"] <= row["ops_per_s"] <= row["ops_per_s_high"]
        assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"]
    assert [row["ops_per_s"] for row in rows(folder) if row["best"]] == [max(row["ops_per_s"] for row in rows(folder))]
    for run in read_sweep(folder).runs:
        command = read_run(folder / run.folder).command
        assert command is not None
        assert command.ended_by_duration
        if run.folder.endswith("-r1"):
            assert main(["report", str(folder / run.folder)]) == 0
    assert len(list((folder / "unfinished").iterdir())) == 2
    capfd.readouterr()
