"""Find out how many simulated nodes real stores take on this machine, and print a Markdown table.

Prometheus scrapes the pages of all nodes; VictoriaMetrics receives their series by remote write, and InfluxDB the
samples. The number of nodes grows until the store or `casstat simulate` itself falls behind. Each row takes three
minutes. Arguments are the names of the stores (all by default) and the numbers of nodes; INTERVAL in the environment is
the interval in seconds.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import psutil

from cli.simulate.simulate_program import MAX_SERVING_PCT
from tests.ports import free_port
from tests.real.programs import program
from tests.real.prometheus import Prometheus
from tests.real.stores import HOST, InfluxDB, StoreProcess, VictoriaMetrics, fetched

NODES = (25, 50, 100, 200, 300, 400)
INTERVAL_S = float(os.environ.get("INTERVAL", "1"))
# The time that is left out, and the time that is measured. Slow metrics are complete only after their second reading.
WARM_UP_S, MEASURED_S = 130.0, 40.0
# The store or the simulator falls behind if it achieves less than this share of what is due, or if its lag is longer.
MIN_SHARE, MAX_LAG_INTERVALS = 0.98, 3
APPENDED = "prometheus_tsdb_head_samples_appended_total"
HEADER = "| store | nodes | samples/s | store CPU % | store MiB | simulator CPU % | ticks % | lag s | limit |"

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Measured:
    """A measurement; `limit` states what fell behind: "simulator", "store", or "" for neither."""

    samples_per_s: float
    store_cpu_pct: float
    store_mib: float
    simulator_cpu_pct: float
    ticks_share: float
    lag_s: float
    limit: str

    def row(self, store: str, nodes: int) -> str:
        """Return the row of the table."""
        cells = [store, nodes, round(self.samples_per_s), round(self.store_cpu_pct), round(self.store_mib)]
        cells += [round(self.simulator_cpu_pct), round(100 * self.ticks_share), round(self.lag_s, 1), self.limit or "-"]
        return f"| {' | '.join(map(str, cells))} |"


@contextmanager
def simulated(nodes: int, *words: str) -> Iterator[Iterator[dict[str, Any]]]:
    """Run `casstat simulate`; yield its figures, one object per interval."""
    command = [*program("simulate"), "--nodes", str(nodes), "-i", str(INTERVAL_S), "--format", "json", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=sys.stderr, text=True) as process:
        try:
            yield (json.loads(line) for line in process.stdout or ())
        finally:
            process.send_signal(signal.SIGINT)


@contextmanager
def running(store: StoreProcess) -> Iterator[psutil.Process]:
    """Run a store; yield its process."""
    before = set(psutil.Process().children())
    store.start()
    try:
        yield next(child for child in psutil.Process().children() if child not in before)
    finally:
        store.stop()


def rows_of(figures: Iterator[dict[str, Any]], length_s: float) -> Rows:
    """Return the figures of the next intervals."""
    return [next(figures) for _ in range(max(round(length_s / INTERVAL_S), 1))]


def measure(
    process: psutil.Process, figures: Iterator[dict[str, Any]], samples: Callable[[Rows, float], float], nodes: int
) -> Measured:
    """Measure a store while it receives the figures' samples; `samples` returns their number per second."""
    rows_of(figures, WARM_UP_S)
    samples([], 1.0)
    before_s, began_s = _cpu_s(process), time.monotonic()
    rows = rows_of(figures, MEASURED_S)
    elapsed_s = time.monotonic() - began_s
    per_s = samples(rows, elapsed_s)
    ticks_share = sum(row["achieved"] for row in rows) / sum(row["due"] for row in rows)
    lag_s = max((store["lag_s"] for store in rows[-1]["stores"]), default=0.0)
    pages_share = fmean(row["pages_per_s"] for row in rows) * INTERVAL_S / nodes
    is_behind = lag_s > MAX_LAG_INTERVALS * INTERVAL_S or any(store["down"] for store in rows[-1]["stores"])
    is_behind |= not rows[-1]["stores"] and pages_share < MIN_SHARE
    is_late = ticks_share < MIN_SHARE or fmean(row["serving_pct"] for row in rows) > MAX_SERVING_PCT
    cpu_pct = fmean(row["cpu_pct"] for row in rows)
    limit = "simulator" if is_late else "store" if is_behind else ""
    store_cpu_pct = 100 * (_cpu_s(process) - before_s) / elapsed_s
    return Measured(per_s, store_cpu_pct, process.memory_info().rss / 2**20, cpu_pct, ticks_share, lag_s, limit)


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def prometheus(folder: Path, nodes: int) -> Measured:
    """Measure a Prometheus that finds the pages of all nodes by HTTP service discovery."""
    listen = f"{HOST}:{free_port(HOST)}"
    job: Mapping[str, Any] = {
        "scrape_interval": f"{round(1000 * INTERVAL_S)}ms",
        "scrape_timeout": f"{round(1000 * INTERVAL_S)}ms",
        "http_sd_configs": [{"url": f"http://{listen}/targets"}],
    }
    with simulated(nodes, "--listen", listen) as figures:
        # The list of targets is read only once a minute, so the simulator must be ready.
        rows_of(figures, INTERVAL_S)
        store = Prometheus(folder, {"casstat": job})
        appended = [0.0]

        def samples(_: Rows, elapsed_s: float) -> float:
            lines = fetched(f"{store.address}/metrics").decode().splitlines()
            before, appended[0] = appended[0], sum(float(x.rsplit(" ")[-1]) for x in lines if x.startswith(APPENDED))
            return (appended[0] - before) / elapsed_s

        with running(store) as process:
            return measure(process, figures, samples, nodes)


def pushed(store: InfluxDB | VictoriaMetrics, url: str, nodes: int) -> Measured:
    """Measure a store to which all nodes push."""
    with running(store) as process, simulated(nodes, "--to", url) as figures:
        return measure(process, figures, _points, nodes)


def remote_write(folder: Path, nodes: int) -> Measured:
    """Measure a VictoriaMetrics that receives the series of all pages by remote write."""
    store = VictoriaMetrics(folder)
    return pushed(store, store.write_url, nodes)


def influxdb(folder: Path, nodes: int) -> Measured:
    """Measure an InfluxDB that receives the samples of all nodes."""
    store = InfluxDB(folder)
    return pushed(store, store.url, nodes)


def _points(rows: Rows, _: float) -> float:
    return fmean(row["stores"][0]["points_per_s"] for row in rows) if rows else 0.0


STORES: Mapping[str, Callable[[Path, int], Measured]] = {
    "Prometheus": prometheus,
    "VictoriaMetrics": remote_write,
    "InfluxDB 1.8": influxdb,
}


def main(arguments: Sequence[str]) -> int:
    """Measure all stores and print the table; return 1 if a store falls behind with the fewest nodes."""
    counts = [int(word) for word in arguments if word.isdecimal()] or list(NODES)
    names = [word for word in arguments if not word.isdecimal()] or list(STORES)
    failed = False
    print(f"interval {INTERVAL_S:g} s, {psutil.cpu_count()} CPUs\n\n{HEADER}\n|{'---|' * 9}", flush=True)
    for name in names:
        for nodes in counts:
            with TemporaryDirectory() as folder:
                result = STORES[name](Path(folder, "store"), nodes)
            print(result.row(name, nodes), flush=True)
            failed |= nodes == counts[0] and result.limit == "store"
            if result.limit:
                break
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
