"""Compare the time of a local merge with that of an earlier version, in turn, on the same recordings.

The goal of 60 s for 300 nodes x 70 minutes holds for a machine on which the earlier version takes 98 s. The speed of
virtual machines differs several times over, and varies from minute to minute, so only the ratio of times that were
measured one after the other can be compared with that of the goal.

Prints the wall-clock times, and the largest proportional set size (PSS) of all processes of a merge. Arguments are the
number of nodes, of ticks per node and of rounds (60, 4200 and 3 by default). CASSTAT_BENCH_DIR keeps the recordings.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import psutil

from benchmarks import node_recordings, simulated_recordings

NODES, TICKS, ROUNDS = 60, 4200, 3
# The version before the merge was made faster, and the times on the machine of the goal: measured and wanted.
EARLIER, EARLIER_S, GOAL_S = "13332941", 98.0, 60.0
MAX_MIB, POLL_S = 512.0, 0.5


def merge(code: Path, paths: Sequence[Path], output: Path) -> tuple[float, float]:
    """Run `casstat merge` of the version in `code`; return the time in seconds and the memory in MiB."""
    command = [sys.executable, "-m", "cli", "merge", *map(str, paths), "-o", str(output)]
    environ = {**os.environ, "PYTHONPATH": str(code)}
    began_s, most_mib = time.monotonic(), 0.0
    with subprocess.Popen(command, cwd=code, env=environ, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            most_mib = max(most_mib, _mib(process.pid))
            with suppress(subprocess.TimeoutExpired):
                process.wait(POLL_S)
        elapsed_s = time.monotonic() - began_s
    if process.returncode:
        raise SystemExit(f"the merge of {code} failed with exit code {process.returncode}")
    return elapsed_s, most_mib


def _mib(pid: int) -> float:
    """Return the PSS of a process and its descendants."""
    total_bytes = 0
    with suppress(psutil.Error):
        for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
            with suppress(psutil.Error):
                total_bytes += process.memory_full_info().pss
    return total_bytes / 2**20


def main(arguments: Sequence[str]) -> int:
    """Print the table; return 1 if the ratio or the memory exceeds the goal."""
    nodes, ticks, rounds = map(int, arguments or (NODES, TICKS, ROUNDS))
    paths = simulated_recordings.cluster(node_recordings.folder() / f"cluster-{nodes}-{ticks}", nodes, ticks)
    current = Path(__file__).parents[1]
    ratios, most_mib = [], 0.0
    print(f"{nodes} nodes, {ticks} ticks, {psutil.cpu_count()} CPUs\n")
    print("| earlier version, s | this version, s | ratio | memory, MiB |\n|---|---|---|---|", flush=True)
    with TemporaryDirectory() as folder:
        earlier = Path(folder, "earlier")
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", earlier, EARLIER], check=True, cwd=current)  # noqa: S607
        try:
            for number in range(rounds):
                earlier_s, _ = merge(earlier, paths, Path(folder, f"earlier-{number}"))
                current_s, mib = merge(current, paths, Path(folder, f"current-{number}"))
                ratios.append(current_s / earlier_s)
                most_mib = max(most_mib, mib)
                print(f"| {earlier_s:.1f} | {current_s:.1f} | {ratios[-1]:.2f} | {mib:.0f} |", flush=True)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", earlier], check=True, cwd=current)  # noqa: S607
    ratio, allowed = median(ratios), GOAL_S / EARLIER_S
    print(f"\nmedian ratio: {ratio:.2f} (allowed: {allowed:.2f}), {most_mib:.0f} MiB (allowed: {MAX_MIB:.0f})")
    print(
        f"on a machine on which the earlier version takes {EARLIER_S:.0f} s, this one takes {ratio * EARLIER_S:.0f} s"
    )
    return int(ratio > allowed or most_mib > MAX_MIB)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
