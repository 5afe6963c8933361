"""Lateness of ticks while the agent ships to InfluxDB, VictoriaMetrics and Graphite, and Prometheus scrapes it."""

import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil

from benchmarks.figures import Figure
from benchmarks.node import cpu_s, loaded, real_node
from cli.setup.demo.demo_node import Node
from collector.node.selection import DEFAULT_TABLES
from collector.recording.journal_files import journal_files
from collector.recording.reader import Entry, read
from tests.real.prometheus import Prometheus
from tests.real.stores import Carbon, InfluxDB, VictoriaMetrics

MINUTES = float(os.environ.get("CASSTAT_BENCH_MIN", "10"))
RATE = 300
ADDRESS = "127.0.0.1:28190"
MAX_LATE_MS = 50.0
SINK_UP = re.compile(rb"^casstat_sink_up\{.* ([01])\.0$", re.MULTILINE)


def run() -> Iterator[Figure]:
    """Measure the agent for CASSTAT_BENCH_MIN minutes (default 10) while the stores and Prometheus are running."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="casstat-bench-")))
        stores = InfluxDB(folder / "influxdb"), VictoriaMetrics(folder / "victoria-metrics"), Carbon(folder / "carbon")
        prometheus = Prometheus(folder / "prometheus", {"agent": {"static_configs": [{"targets": [ADDRESS]}]}})
        for program in (*stores, prometheus):
            program.start()
            stack.callback(program.stop)
        node = stack.enter_context(real_node(DEFAULT_TABLES))
        stack.enter_context(loaded(RATE))
        yield from _figures(node, [store.url for store in stores], folder / "journal")


def _figures(node: Node, urls: list[str], journal: Path) -> Iterator[Figure]:
    command = [sys.executable, "-m", "cli", "agent", "--jolokia", node.spec.jolokia_url]
    command += ["--journal-dir", str(journal), "--listen", ADDRESS, *(f"--to={url}" for url in urls)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as agent:
        try:
            process = psutil.Process(agent.pid)
            time.sleep(60 * MINUTES)
            used_s, rss = cpu_s(process), process.memory_info().rss
            with urllib.request.urlopen(f"http://{ADDRESS}/metrics", timeout=10) as response:
                up = [value == b"1" for value in SINK_UP.findall(response.read())]
        finally:
            agent.terminate()
    entries = [record for file in journal_files(journal) for record in read(file) if isinstance(record, Entry)]
    late_ms = sorted(1000 * entry.snapshot.tick.late_s for entry in entries)
    yield Figure("ticks", len(entries), "")
    yield Figure("sinks up", sum(up), "of 3", 3, True)
    yield Figure("missed ticks", sum(entry.snapshot.tick.missed for entry in entries), "", 0)
    yield Figure("lateness, median", late_ms[len(late_ms) // 2], "ms")
    yield Figure("lateness, p99", late_ms[int(0.99 * len(late_ms))], "ms", 10.0)
    yield Figure("lateness, maximum", late_ms[-1], "ms", MAX_LATE_MS)
    yield Figure("CPU", 1000 * used_s / len(entries), "ms/tick")
    yield Figure("resident memory", rss / 1e6, "MB")
