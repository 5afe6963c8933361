"""A Dask scheduler and workers, each in a process of its own."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import eventually


class DaskCluster:
    """A scheduler and its workers, which are identified by their index."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "scheduler.json"
        self._log = (folder / "dask.log").open("wb")
        self.scheduler = self._start("scheduler", "--port", "0")
        self.workers: list[subprocess.Popen[bytes]] = []
        eventually(lambda: self._file.exists() and self._file.read_text().endswith("}"))
        self.address = str(json.loads(self._file.read_text())["address"])

    def _start(self, kind: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--scheduler-file", str(self._file)]
        options = ["--host", "127.0.0.1", "--no-dashboard", *words]
        return subprocess.Popen([*command, *options], stdout=self._log, stderr=self._log)

    def add_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker with one thread, without waiting until it is connected."""
        worker = self._start("worker", "--nthreads", "1", "--no-nanny")
        self.workers.append(worker)
        return worker

    def wait_for_workers(self, count: int) -> None:
        """Wait until this many workers are connected."""
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:  # type: ignore[no-untyped-call]
            client.wait_for_workers(count, timeout=60)

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.send_signal(signal.SIGKILL)
            process.wait()
        self._log.close()


@contextmanager
def dask_cluster(folder: Path, workers: int) -> Iterator[DaskCluster]:
    """Run a cluster with connected workers."""
    cluster = DaskCluster(folder)
    try:
        for _ in range(workers):
            cluster.add_worker()
        if workers:
            cluster.wait_for_workers(workers)
        yield cluster
    finally:
        cluster.stop()
