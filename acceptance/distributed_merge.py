"""Merge the recordings of simulated nodes on a real Dask scheduler with several workers, all on this machine.

The last merge loses a worker after a while and gets another one. The tables must equal those of the local merge byte
for byte. Prints the wall-clock time and the largest resident memory of a process. Arguments are the number of nodes
and the number of ticks per node (300 and 4200 by default), followed by the numbers of workers to use (1, 2 and 4 by
default). CASSTAT_BENCH_DIR keeps the recordings.
"""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from benchmarks import node_recordings, simulated_recordings
from collector.printable import count_text
from tests.dask_cluster import DaskCluster, dask_cluster

NODES, TICKS = 300, 4200
WORKERS = (1, 2, 4)
KILL_AFTER_S, POLL_S = 15.0, 0.2


class LargestProcess:
    """Measures the largest resident memory of this process' children and their children."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def __enter__(self) -> "LargestProcess":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _poll(self) -> None:
        while not self._stop.wait(POLL_S):
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):
                    self.size_bytes = max(self.size_bytes, process.memory_info().rss)


def merge(paths: Sequence[Path], output: Path, *words: str) -> float:
    """Run `casstat merge`; return the wall-clock time in seconds."""
    began_s = time.monotonic()
    command = [sys.executable, "-m", "cli", "merge", *map(str, paths), "-o", str(output), *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began_s


def replace_a_worker(cluster: DaskCluster) -> None:
    """Kill a worker with SIGKILL and start another one."""
    cluster.workers[0].send_signal(signal.SIGKILL)
    cluster.add_worker()


def measured(name: str, work: Callable[[], float]) -> None:
    """Print a row with the time and the memory of a merge."""
    with LargestProcess() as largest:
        elapsed_s = work()
    print(f"| {name} | {elapsed_s:.1f} | {largest.size_bytes / 2**30:.2f} |", flush=True)


def main(arguments: Sequence[str]) -> int:
    """Print the table; return 1 if a merge differs from the local one."""
    nodes, ticks, *workers = map(int, arguments or (NODES, TICKS))
    worker_counts = workers or WORKERS
    paths = simulated_recordings.cluster(node_recordings.folder() / f"cluster-{nodes}-{ticks}", nodes, ticks)
    print(f"{nodes} nodes, {ticks} ticks, {psutil.cpu_count()} CPUs\n")
    print("| merge | wall-clock time, s | largest process, GiB |\n|---|---|---|", flush=True)
    differing = []
    with TemporaryDirectory() as folder:
        local = Path(folder, "local")
        measured("local", lambda: merge(paths, local))
        for number, count in enumerate(worker_counts, 1):
            output, dask = Path(folder, f"merge-{number}"), Path(folder, f"dask-{number}")
            dask.mkdir()
            with dask_cluster(dask, count) as cluster:
                is_replaced = number == len(worker_counts)
                timer = threading.Timer(KILL_AFTER_S, replace_a_worker, [cluster])
                if is_replaced:
                    timer.start()
                name = f"{count_text(count, 'worker')}{', one replaced' if is_replaced else ''}"
                measured(name, lambda output=output, at=cluster.address: merge(paths, output, "--scheduler", at))  # type: ignore[misc]
                timer.cancel()
            for table in ("rows.tsv", "rows.csv"):
                if (output / table).read_bytes() != (local / table).read_bytes():
                    differing.append(f"{count} workers: {table}")
        # The speed of a virtual machine varies, so the local merge is measured before and after the others.
        measured("local, again", lambda: merge(paths, Path(folder, "again")))
    print(f"\ntables that differ from the local merge: {', '.join(differing) or 'none'}")
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
