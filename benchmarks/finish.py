"""Completing a run: tables, plots, summary and report of 3 nodes in 10 minutes, and of 300 nodes in 70 minutes.

If CASSTAT_BENCH_PARENT names a commit, its program completes the same runs and merges the same recordings.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

from benchmarks import node_recordings, simulated_recordings
from benchmarks.figures import Figure
from benchmarks.merge import NODES, TICKS, Cost, measured
from collector.runs.run import Run, RunNode, RunPhase
from collector.runs.run_file import write_run

PARENT_VARIABLE = "CASSTAT_BENCH_PARENT"
FEW_NODES, FEW_TICKS, WARM_UP_S, ROUNDS = 3, 600, 60, 3
MAX_OF_MERGE, MAX_OF_PARENT, MAX_MERGE_OF_PARENT = 1.3, 1 / 3, 0.7
MAX_GIB = 4
BEGIN_S = simulated_recordings.BEGIN_TIME_S
WRITTEN = ("summary.json", "merged/rows.tsv", "plots/overview.png", "report.html")
REPOSITORY = Path(__file__).parents[1]


def run() -> Iterator[Figure]:
    """Complete both runs as `casstat record` does after the end of its command, and merge the larger one."""
    few = simulated_recordings.cluster(node_recordings.folder() / "three", FEW_NODES, FEW_TICKS)
    many = simulated_recordings.cluster(node_recordings.folder() / "cluster", NODES[-1], TICKS)
    with tempfile.TemporaryDirectory(prefix="casstat-bench-") as temporary, _parent(Path(temporary)) as parent:
        folder = Path(temporary, "run")
        short_s = min(_completed(few, FEW_TICKS, folder).wall_s for _ in range(ROUNDS))
        yield Figure(f"{FEW_NODES} nodes, {FEW_TICKS} s: completing the run", short_s, "s")
        if parent is not None:
            parent_s = min(_completed(few, FEW_TICKS, folder, parent).wall_s for _ in range(ROUNDS))
            yield Figure("the same, this commit / parent", short_s / parent_s, "times", MAX_OF_PARENT)
        label = f"{len(many)} nodes, {TICKS} s"
        merge, completed = _merged(many, folder), _completed(many, TICKS, folder)
        yield Figure(f"{label}: casstat merge", merge.wall_s, "s")
        yield Figure(f"{label}: completing the run", completed.wall_s, "s")
        yield Figure(
            f"{label}: completing the run / casstat merge", completed.wall_s / merge.wall_s, "times", MAX_OF_MERGE
        )
        yield Figure(f"{label}: completing the run, resident memory", completed.resident / 2**30, "GiB", MAX_GIB)
        if parent is not None:
            of_parent = _merged(many, folder, parent)
            ratio = merge.wall_s / of_parent.wall_s
            yield Figure(f"{label}: casstat merge, this commit / parent", ratio, "times", MAX_MERGE_OF_PARENT)


@contextmanager
def _parent(folder: Path) -> Iterator[Path | None]:
    """Yield a directory with the files of the commit in CASSTAT_BENCH_PARENT; None if it is not set."""
    commit = os.environ.get(PARENT_VARIABLE)
    if not commit:
        yield None
        return
    tree = folder / "parent"
    git = ["git", "-C", str(REPOSITORY), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
    try:
        yield tree
    finally:
        subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def _completed(recordings: Sequence[Path], ticks: int, folder: Path, tree: Path = REPOSITORY) -> Cost:
    """Complete a run of recordings in `folder` with the program in `tree`. Raises SystemExit if a file is missing."""
    _write_run(recordings, ticks, folder)
    # Nothing is missing, so only the run's results are made.
    cost = measured([sys.executable, "-m", "cli", "fetch", "--recover", str(folder)], quiet=True, folder=tree)
    if missing := [name for name in WRITTEN if not (folder / name).is_file()]:
        raise SystemExit(f"{folder}: not written: {', '.join(missing)}")
    rmtree(folder)
    return cost


def _merged(recordings: Sequence[Path], folder: Path, tree: Path = REPOSITORY) -> Cost:
    command = [sys.executable, "-m", "cli", "merge", *map(str, recordings), "-o", str(folder)]
    cost = measured(command, quiet=True, folder=tree)
    rmtree(folder)
    return cost


def _write_run(recordings: Sequence[Path], ticks: int, folder: Path) -> None:
    nodes = []
    for path in recordings:
        node = folder / "nodes" / path.name
        node.parent.mkdir(parents=True, exist_ok=True)
        node.symlink_to(path)
        nodes.append(RunNode(path.name, "", f"nodes/{path.name}", ticks, interval_s=1.0))
    phases = (
        RunPhase("warm-up", BEGIN_S, BEGIN_S + WARM_UP_S, measured=False),
        RunPhase("load", BEGIN_S + WARM_UP_S, BEGIN_S + ticks),
    )
    write_run(folder, Run("load", BEGIN_S, BEGIN_S + ticks, "", {}, tuple(nodes), phases=phases))
