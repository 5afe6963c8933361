"""`top --replay` shows the same values as `casstat merge`, and no values where the recording has a gap."""

import csv
from pathlib import Path

import pytest

from cli.errors import CasstatError
from cli.main import main
from cli.recordings.recording_arguments import MergeSettings
from cli.top.recorded_frames import RecordedFrames
from collector.live.cluster_interval import State
from exporters.live.live_columns import value
from tests.collector.merge.recorded_nodes import BEGIN_S, busy, record


@pytest.fixture
def rec(tmp_path: Path) -> Path:
    record(tmp_path / "rec" / "a", busy("a", 30))
    record(tmp_path / "rec" / "b", busy("b", 20))
    return tmp_path / "rec"


def test_replay_shows_the_same_values_as_the_merge(rec: Path, tmp_path: Path) -> None:
    assert main(["merge", str(rec), "-i", "1", "-o", str(tmp_path / "merged")]) == 0
    with next((tmp_path / "merged").glob("rows.tsv*")).open(newline="") as file:
        rows = {(row["node"], float(row["time"])): row for row in csv.DictReader(file, delimiter="\t")}
    frames = RecordedFrames(MergeSettings((rec,), 1.0)).history.frames
    compared = 0
    for frame in frames:
        for name, cells in [("cluster", frame.cluster), *((node.name, node.cells) for node in frame.nodes)]:
            row = rows.get((name, frame.time_s))
            for column in ("reads_per_s", "read_mean_ms", "read_p99_ms", "writes_per_s", "write_p99_ms"):
                shown = value(cells, column)
                merged = "" if row is None else row[column]
                if shown is None:
                    assert merged in ("", "NA", "NaN")
                else:
                    assert float(merged) == pytest.approx(shown, abs=1e-4)
                    compared += 1
    assert compared > 100


def test_after_its_recording_ends_a_node_is_gone_and_has_no_values(rec: Path) -> None:
    frames = RecordedFrames(MergeSettings((rec,), 1.0)).history.frames
    assert frames[0].time_s > BEGIN_S
    ended = frames[-1].nodes[1]
    assert (ended.name, ended.state) == ("b", State.GONE)
    assert ended.age_s is not None
    assert ended.age_s >= 9
    assert value(ended.cells, "reads_per_s") is None
    assert frames[-1].counted == 1
    assert frames[5].counted == 2


def test_once_shows_the_last_interval_of_all_nodes_although_one_ends_a_tick_earlier(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, ticks in (("a", 30), ("b", 29)):
        record(tmp_path / name, busy(name, ticks))
    assert main(["top", "--replay", str(tmp_path), "-i", "1", "--once"]) == 0
    out = capsys.readouterr().out
    assert "2 of 2 nodes" in out
    assert "gone" not in out


def test_a_directory_without_recordings_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(CasstatError, match="no recordings found"):
        RecordedFrames(MergeSettings((tmp_path / "empty",)))
