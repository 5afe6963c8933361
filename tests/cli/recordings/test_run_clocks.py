"""Commands that merge a run correct its times with the measurements of each node's clock."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from cli.recordings.merge_program import recording_views
from cli.recordings.recording_arguments import MergeSettings
from cli.recordings.views import View
from cli.top.recorded_frames import RecordedFrames
from collector.model.snapshot import Event
from collector.runs.run import NodeClock, Run, RunNode
from collector.runs.run_file import write_run
from tests.cli.recordings.conftest import Run as RunCasstat
from tests.collector.merge.recorded_nodes import BEGIN_S, busy, record, timed

TICKS = 61
STEP_S = 10.0
END_S = BEGIN_S + STEP_S * (TICKS - 1)
# Each tick covers only 0.1 s, so an error of 0.1 s in its time moves it to another interval of the merge.
INTERVAL_S = 0.1


def drifting(time_s: float) -> float:
    """Return the offset of a clock that is 30 s ahead and drifts by 200 ms in ten minutes."""
    return 30 + 0.2 * (time_s - BEGIN_S) / 600


def run_of_two(folder: Path, clocks: tuple[NodeClock, ...]) -> Path:
    """Record a run of the nodes `a` and `b`; if `clocks` is not empty, the clock of `a` drifts."""
    ticks = busy("a", TICKS, lambda tick: [500] * (tick % 7), interval_s=STEP_S)
    record(folder / "nodes" / "a", timed(ticks, drifting) if clocks else ticks, interval_s=INTERVAL_S)
    record(folder / "nodes" / "b", busy("b", TICKS, interval_s=STEP_S), interval_s=INTERVAL_S)
    nodes = (RunNode("a", "a", "nodes/a", clocks=clocks), RunNode("b", "b", "nodes/b"))
    write_run(folder, Run("run", BEGIN_S - 0.5, END_S + 0.5, "1", nodes=nodes))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run in which one clock drifts; `../right/run` is the same run with correct clocks."""
    times_s = (BEGIN_S - 2, END_S + 3)
    run_of_two(tmp_path / "right" / "run", ())
    return run_of_two(tmp_path / "run", tuple(NodeClock(at_s, drifting(at_s), 0.001) for at_s in times_s))


def test_merged_files_are_those_of_correct_clocks(folder: Path, run: RunCasstat) -> None:
    from collector.arrow import pq

    for path, out in (("right/run", "expected"), ("run", "merged")):
        code, _, errors = run("merge", path, "-o", out, "-i", "1", "--series")
        assert (code, errors) == (0, "")
    for name in ("rows.csv", "rows.tsv"):
        assert (Path("merged") / name).read_bytes() == (Path("expected") / name).read_bytes()
    for table in ("rows", "values", "buckets"):
        assert pq.read_table(Path("merged") / table).equals(pq.read_table(Path("expected") / table)), table


def test_series_keep_their_times_if_a_clock_is_set(tmp_path: Path, run: RunCasstat) -> None:
    from collector.arrow import pq

    ticks = timed(busy("a", 40), lambda time_s: 60.0 * (time_s >= BEGIN_S + 20))
    record(tmp_path / "run" / "nodes" / "a", ticks)
    clocks = NodeClock(BEGIN_S - 1, 0.0, 0.001), NodeClock(BEGIN_S + 41, 60.0, 0.001)
    node = RunNode("a", "a", "nodes/a", clocks=clocks)
    write_run(tmp_path / "run", Run("run", BEGIN_S - 0.5, BEGIN_S + 39.5, "1", nodes=(node,)))
    code, _, errors = run("merge", "run", "-o", "out", "--series")
    assert (code, errors) == (0, "")
    times = pq.read_table(Path("out") / "values")["time"].to_pylist()
    assert sorted({time.timestamp() for time in times}) == [BEGIN_S + second for second in range(40)]


def test_a_clock_that_was_set_back_is_not_called_wrong(tmp_path: Path, run: RunCasstat) -> None:
    nodes = tmp_path / "run" / "nodes"
    record(nodes / "a", timed(busy("a", 40), lambda time_s: -3600.0 * (time_s >= BEGIN_S + 20)))
    record(nodes / "b", busy("b", 40))
    clocks = NodeClock(BEGIN_S - 1, 0.0, 0.001), NodeClock(BEGIN_S + 41, -3600.0, 0.001)
    both = RunNode("a", "a", "nodes/a", clocks=clocks), RunNode("b", "b", "nodes/b")
    write_run(tmp_path / "run", Run("run", BEGIN_S - 0.5, BEGIN_S + 39.5, "1", nodes=both))
    assert run("merge", "run", "-o", "out", "-i", "1")[::2] == (0, "")


def test_the_interval_follows_from_the_length_of_a_run_whatever_the_clock_shows(tmp_path: Path) -> None:
    record(tmp_path / "nodes" / "a", timed(busy("a", 41), lambda _: 3600.0))
    node = RunNode("a", "a", "nodes/a", clocks=(NodeClock(BEGIN_S, 3600.0, 0.001),))
    write_run(tmp_path, Run("run", BEGIN_S, BEGIN_S + 40, "1", nodes=(node,)))
    views = recording_views(MergeSettings((tmp_path,), points=10), quiet=True)
    run, _ = View(views, lambda _, node: len(node.columns.indices)).merged()
    assert (run.grid.interval_s, run.nodes[0].product) == (5.0, 8)


def test_replayed_frames_are_those_of_correct_clocks(folder: Path) -> None:
    frames, expected = (
        list(RecordedFrames(MergeSettings((path,), interval=1.0)).history.frames)
        for path in (folder, folder.parent / "right" / "run")
    )
    assert len(frames) > TICKS
    # Absent cells are NaN, which is not equal to itself.
    assert repr(frames) == repr(expected)


def test_a_given_offset_replaces_the_measurements(folder: Path, run: RunCasstat) -> None:
    shutil.copytree("run/nodes", "recordings")
    for path, out in (("run", "of_run"), ("recordings", "of_recordings")):
        code, *_ = run("merge", path, "-o", out, "-i", "1", "--clock", "a=30.2", "--from", str(BEGIN_S + 100))
        assert code == 0
    assert Path("of_run/rows.csv").read_bytes() == Path("of_recordings/rows.csv").read_bytes()


def test_the_times_of_events_are_corrected(tmp_path: Path) -> None:
    snapshot, *others = timed(busy("a", 20), lambda _: 30.0)[::-1]
    scrape = replace(snapshot.scrapes[0], events=(Event("gc", "GC 1 s", BEGIN_S + 30 + 18.5),))
    folder = record(tmp_path / "a", [*others[::-1], replace(snapshot, scrapes=(scrape,))])
    frames = RecordedFrames(MergeSettings((folder,), interval=1.0, clocks=(("a", 30.0),))).history.frames
    assert [event.time_s for frame in frames for event in frame.events] == [BEGIN_S + 18.5]
