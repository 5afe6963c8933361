"""`casstat merge` of a run that `casstat fetch` has written."""

import csv
import json
from pathlib import Path

import pytest

from cli.main import main
from collector.recording.journal_files import journal_files
from collector.runs.run_file import read_run
from tests.faults.fetched_nodes import RecordedNode, fetch, serving_history


def test_a_merge_contains_the_first_and_last_tick_of_the_period_despite_clock_errors(
    recorded_node: RecordedNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, begin_s = tmp_path / "run", recorded_node.begin_s
    period = recorded_node.period(300, 309)
    with serving_history(tmp_path / "other", "n2", begin_s=begin_s) as other:
        fetch(capsys, recorded_node.address, other.address, *period, "-o", run)
    content = json.loads((run / "run.json").read_text())
    for node, offset_s in zip(content["nodes"], (0.0004, -0.0004), strict=True):
        node["clocks"] = [{"at_s": begin_s + 400, "offset_s": offset_s, "error_s": 0.0005}]
    (run / "run.json").write_text(json.dumps(content))
    for limits in ((), period):
        assert main(["merge", str(run), "-o", str(tmp_path / "merged"), "-i", "1", *limits]) == 0
        with (tmp_path / "merged" / "rows.csv").open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["node"] == "cluster"]
        assert [(row["nodes"], row["reads"]) for row in rows] == [("2", "20")] * 10


def test_merge_takes_the_time_range_and_the_clock_offsets_from_the_run(
    recorded_node: RecordedNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, begin_s = tmp_path / "run", recorded_node.begin_s
    fetch(capsys, recorded_node.address, *recorded_node.period(300, 359), "-o", run)
    text = (run / "run.json").read_text()
    (node,) = read_run(run).nodes
    # Pretend that the node's clock was half a minute ahead.
    moved = text.replace(f'"offset_s": {node.clocks[0].offset_s}', '"offset_s": 30.0')
    assert moved != text
    (run / "run.json").write_text(moved)
    assert main(["merge", str(run), "-o", str(tmp_path / "merged"), "-i", "1"]) == 0
    lines = (tmp_path / "merged" / "rows.tsv").read_text().splitlines()
    times_s = {float(line.split("\t")[0]) for line in lines[1:]}
    assert min(times_s) == begin_s + 300
    assert max(times_s) == begin_s + 329


def test_a_part_of_a_run_and_a_directory_of_runs_cannot_be_merged(
    recorded_node: RecordedNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "runs" / "r1"
    fetch(capsys, recorded_node.address, "--last", "60s", "-o", run)
    (file,) = journal_files(run)
    for path in (run / "nodes", run / "nodes" / "n1", file):
        assert main(["merge", str(path), "-o", str(tmp_path / "merged")]) == 2
        assert f"is part of the run {run} (hint" in capsys.readouterr().err
    assert main(["merge", str(run.parent), "-o", str(tmp_path / "merged")]) == 2
    assert f"contains runs (hint: use one of them, such as {run})" in capsys.readouterr().err


def test_a_run_cannot_be_combined_with_other_recordings(
    recorded_node: RecordedNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    fetch(capsys, recorded_node.address, *recorded_node.whole_period, "-o", run)
    for paths in ((run, recorded_node.journal), (recorded_node.journal, run)):
        assert main(["merge", *map(str, paths), "-o", str(tmp_path / "merged")]) == 2
        assert f"{run}: a run cannot be combined with other recordings" in capsys.readouterr().err
