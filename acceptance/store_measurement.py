"""Measure what real stores need for the series of simulated nodes: CPU, memory and disk.

Prometheus scrapes the pages of all nodes; VictoriaMetrics receives their series by remote write, and InfluxDB the
samples.
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from statistics import fmean
from typing import Any

import psutil

from cli.simulate.simulate_program import MAX_SERVING_PCT
from tests.ports import free_port
from tests.real.programs import program
from tests.real.prometheus import Prometheus
from tests.real.stores import HOST, InfluxDB, StoreProcess, VictoriaMetrics, fetched
from tests.waiting import eventually

# The store or the simulator falls behind if it achieves less than this share of what is due, or if its lag is longer.
MIN_SHARE, MAX_LAG_INTERVALS = 0.98, 3
APPENDED = "prometheus_tsdb_head_samples_appended_total"
# InfluxDB compacts its files this soon after the last write; by default, after 10 minutes and 4 hours.
INFLUXDB_COMPACTS = {
    "INFLUXDB_DATA_CACHE_SNAPSHOT_WRITE_COLD_DURATION": "5s",
    "INFLUXDB_DATA_COMPACT_FULL_WRITE_COLD_DURATION": "5s",
}
COMPACTION_S = 300.0
# The unit of `st_blocks`.
BLOCK_BYTES = 512

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class SimulatedLoad:
    """A number of simulated nodes with a tick every `interval_s`; the first `warm_up_s` are not measured."""

    nodes: int
    interval_s: float
    warm_up_s: float
    measured_s: float


@dataclass(frozen=True)
class Measured:
    """A measurement; `limit` states what fell behind: "simulator", "store", or "" for neither.

    The size on disk is that of the compacted samples and their index, without write-ahead logs. InfluxDB's samples are
    points with several values.
    """

    load: SimulatedLoad
    samples_per_s: float
    store_cpu_pct: float
    store_bytes: int
    simulator_cpu_pct: float
    ticks_share: float
    lag_s: float
    limit: str
    disk_bytes_per_sample: float = nan


@contextmanager
def _simulated(load: SimulatedLoad, *words: str) -> Iterator[Iterator[dict[str, Any]]]:
    """Run `casstat simulate`; yield its figures, one object per interval."""
    options = ["--nodes", str(load.nodes), "-i", str(load.interval_s), "--format", "json"]
    command = [*program("simulate"), *options, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=sys.stderr, text=True) as process:
        try:
            yield (json.loads(line) for line in process.stdout or ())
        finally:
            process.send_signal(signal.SIGINT)


@contextmanager
def _running(store: StoreProcess) -> Iterator[psutil.Process]:
    """Run a store; yield its process."""
    before = set(psutil.Process().children())
    store.start()
    try:
        yield next(child for child in psutil.Process().children() if child not in before)
    finally:
        store.stop()


def _measure(
    process: psutil.Process, figures: Iterator[dict[str, Any]], samples: Callable[[], float], load: SimulatedLoad
) -> Measured:
    """Measure a store while it receives the figures' samples; `samples` returns their number since the store began."""

    def rows_of(length_s: float) -> Rows:
        return [next(figures) for _ in range(max(round(length_s / load.interval_s), 1))]

    rows_of(load.warm_up_s)
    samples_before, before_s, began_s = samples(), _cpu_s(process), time.monotonic()
    rows = rows_of(load.measured_s)
    elapsed_s = time.monotonic() - began_s
    stores = rows[-1]["stores"]
    lag_s = max((store["lag_s"] for store in stores), default=0.0)
    pages_share = fmean(row["pages_per_s"] for row in rows) * load.interval_s / load.nodes
    is_behind = lag_s > MAX_LAG_INTERVALS * load.interval_s or any(store["down"] for store in stores)
    is_behind |= not stores and pages_share < MIN_SHARE
    ticks_share = sum(row["achieved"] for row in rows) / sum(row["due"] for row in rows)
    is_late = ticks_share < MIN_SHARE or fmean(row["serving_pct"] for row in rows) > MAX_SERVING_PCT
    return Measured(
        load=load,
        samples_per_s=(samples() - samples_before) / elapsed_s,
        store_cpu_pct=100 * (_cpu_s(process) - before_s) / elapsed_s,
        store_bytes=process.memory_info().rss,
        simulator_cpu_pct=fmean(row["cpu_pct"] for row in rows),
        ticks_share=ticks_share,
        lag_s=lag_s,
        limit="simulator" if is_late else "store" if is_behind else "",
    )


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _size_bytes(folder: Path) -> int:
    """Return the space that the files in a directory occupy; they may be deleted meanwhile."""
    size_bytes = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            size_bytes += BLOCK_BYTES * path.stat().st_blocks if path.is_file() else 0
    return size_bytes


def _sum(address: str, beginning: str) -> float:
    """Return the sum of those series of a store's own /metrics that begin like this."""
    lines = fetched(f"{address}/metrics").decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(beginning))


def prometheus(folder: Path, load: SimulatedLoad) -> Measured:
    """Measure a Prometheus that finds the pages of all nodes by HTTP service discovery."""
    listen = f"{HOST}:{free_port(HOST)}"
    interval = f"{round(1000 * load.interval_s)}ms"
    job: Mapping[str, Any] = {
        "scrape_interval": interval,
        "scrape_timeout": interval,
        "http_sd_configs": [{"url": f"http://{listen}/targets"}],
    }
    with _simulated(load, "--listen", listen) as figures:
        # The list of targets is read only once a minute, so the simulator must be ready.
        next(figures)
        store = Prometheus(folder, {"casstat": job}, options=("--web.enable-admin-api",))
        with _running(store) as process:
            measured = _measure(process, figures, lambda: _sum(store.address, APPENDED), load)
            # A snapshot writes the samples in memory as a compacted block.
            answer = json.loads(fetched(f"{store.address}/api/v1/admin/tsdb/snapshot", b""))
            blocks = [*(folder / "data" / "snapshots" / answer["data"]["name"]).iterdir()]
            stored = sum(json.loads((block / "meta.json").read_text())["stats"]["numSamples"] for block in blocks)
            return replace(measured, disk_bytes_per_sample=sum(map(_size_bytes, blocks)) / stored)


def victoria_metrics(folder: Path, load: SimulatedLoad) -> Measured:
    """Measure a VictoriaMetrics that receives the series of all pages by remote write."""
    store = VictoriaMetrics(folder)

    def inserted() -> float:
        return _sum(store.address, "vm_rows_inserted_total")

    with _running(store) as process:
        with _simulated(load, "--to", store.write_url) as figures:
            measured = _measure(process, figures, inserted, load)
        fetched(f"{store.address}/internal/force_flush")
        fetched(f"{store.address}/internal/force_merge")
        stored = _sum(store.address, 'vm_rows{type="storage/')
        return replace(measured, disk_bytes_per_sample=_sum(store.address, "vm_data_size_bytes{") / stored)


def influxdb(folder: Path, load: SimulatedLoad) -> Measured:
    """Measure an InfluxDB that receives the samples of all nodes."""
    store = InfluxDB(folder, INFLUXDB_COMPACTS)

    def written() -> float:
        return float(json.loads(fetched(f"{store.address}/debug/vars"))["write"]["values"]["pointReq"])

    with _running(store) as process:
        with _simulated(load, "--to", store.url) as figures:
            measured = _measure(process, figures, written, load)
        # The write-ahead log is deleted once its points have been compacted.
        eventually(lambda: not _size_bytes(folder / "wal" / "db"), COMPACTION_S)
        return replace(measured, disk_bytes_per_sample=_size_bytes(folder / "data") / written())


STORES: Mapping[str, Callable[[Path, SimulatedLoad], Measured]] = {
    "Prometheus": prometheus,
    "VictoriaMetrics": victoria_metrics,
    "InfluxDB 1.8": influxdb,
}
