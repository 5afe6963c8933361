"""A sweep on a real node is killed twice and resumed; its results agree with those of its runs."""

import json
import subprocess
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from cli.main import main
from collector.runs.parameter_sweep import read_sweep
from collector.runs.run_file import read_run
from tests.faults.agents import RunningAgent
from tests.real.conftest import StartNode
from tests.real.programs import PATIENCE_S, load, program
from tests.waiting import eventually

pytestmark = pytest.mark.beside
COLOURS, SIZES, REPEATS = ("red", "green", "blue"), (1, 2), 2
PARAMETERS = ("-P", f"colour={','.join(COLOURS)}", "-P", f"size={','.join(map(str, SIZES))}")
RATE = 100
OPTIONS = ("--repeat", str(REPEATS), "--duration", "2.5s", "--warm-up", "1s", "-q", "--no-report")


def sweep_words(agent: str, folder: Path, *options: str) -> list[str | Path]:
    """Return the arguments of a sweep whose command notes the beginning of each run.

    The load runs all the time, since a load generator may need longer to start than a run lasts.
    """
    script = f'echo "$CASSTAT_RUN {{colour}} {{size}}" >> {folder.with_suffix(".log")}; exec sleep 600'
    return ["sweep", agent, "-o", folder, *PARAMETERS, *OPTIONS, *options, "--", "sh", "-c", script]


def runs_begun(folder: Path) -> int:
    log = folder.with_suffix(".log")
    return len(log.read_text().splitlines()) if log.exists() else 0


def rows(folder: Path) -> list[dict[str, Any]]:
    table_rows: list[dict[str, Any]] = json.loads((folder / "results.json").read_text())["rows"]
    return table_rows


def served(agent: RunningAgent) -> float:
    """Return the number of reads that the node has served."""
    return sum(agent.values("cassandra_client_requests_total", 'operation="Read"'))


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
    with load(node, RATE), RunningAgent(tmp_path / "journal", *arguments).wait_until_serving() as agent:
        before = served(agent)
        eventually(lambda: served(agent) > before, PATIENCE_S)
        for begun, options in ((3, ()), (6, ("--resume",))):
            words = program(*sweep_words(agent.base, folder, *options))
            with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                eventually(lambda count=begun: runs_begun(folder) == count, PATIENCE_S)  # type: ignore[misc]
                process.kill()
        assert len(read_sweep(folder).runs) == 4
        words = program(*sweep_words(agent.base, folder, "--resume"))
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    assert "12 runs, 8 to do" in done.stderr
    assert [tuple(row["parameters"].values()) for row in rows(folder)] == [
        (colour, str(size)) for colour in COLOURS for size in SIZES
    ]
    for row in rows(folder):
        assert (row["runs"], row["failed"], row["missing"], row["errors"]) == (REPEATS, 0, 0, 0)
        assert row["ops_per_s"] > 0
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
