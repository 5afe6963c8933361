"""Lateness of ticks on an idle machine, with nodetool as the source, and while all CPUs are busy."""

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.figures import Figure
from benchmarks.node import loaded, real_node

IDLE_TICKS = 300
NODETOOL_S = 120
BUSY_S = 600
MAX_LATE_MS = 5
BUSY_LOOP = "while True: pass"


def run() -> Iterator[Figure]:
    """Measure an idle node, nodetool on a node under load, and a loaded node with a busy loop on each CPU."""
    with real_node(10) as node:
        time.sleep(30)
        jolokia = ["--jolokia", node.spec.jolokia_url]
        idle = _rows(jolokia, IDLE_TICKS)
        yield Figure("idle: lateness, median", _percentile(idle, 0.5), "ms")
        yield Figure("idle: lateness, p99", _percentile(idle, 0.99), "ms", MAX_LATE_MS)
        with loaded(100):
            nodetool = _rows(["--source", "nodetool", "-m", str(node.spec.jmx_port)], NODETOOL_S)
        yield Figure("nodetool: lateness, p99", _percentile(nodetool, 0.99), "ms")
        yield Figure(f"nodetool: missed ticks in {NODETOOL_S} s", _missed(nodetool), "ticks", 0)
        yield Figure("nodetool: maximum age of Cassandra's values", _maximum_age_s(nodetool), "s")
        burners = [
            subprocess.Popen([sys.executable, "-c", BUSY_LOOP], stdout=subprocess.DEVNULL)
            for _ in range(os.cpu_count() or 1)
        ]
        try:
            with loaded(1e6):
                busy = _rows(jolokia, BUSY_S)
        finally:
            for burner in burners:
                burner.terminate()
                burner.wait()
    cpu = [row["cpu_idle_pct"] for row in busy if row["cpu_idle_pct"] is not None]
    yield Figure("busy: CPU idle, mean", sum(cpu) / len(cpu), "%")
    yield Figure("busy: lateness, p99", _percentile(busy, 0.99), "ms")
    yield Figure(f"busy: missed ticks in {BUSY_S} s", _missed(busy), "ticks", 0)
    yield Figure(
        "busy: ticks without a response from the node", sum(row["reads_per_s"] is None for row in busy), "ticks"
    )


def _rows(options: Sequence[str], count: int) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "cli", "1", str(count), "--format", "json", *options]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(text) for text in out.splitlines()]


def _percentile(rows: list[dict[str, Any]], q: float) -> float:
    late = sorted(row["late_ms"] for row in rows)
    return float(late[math.ceil(q * len(late)) - 1])


def _maximum_age_s(rows: list[dict[str, Any]]) -> float:
    """Return the maximum age of Cassandra's values, ignoring rows before the first report, which have no age."""
    return float(max(row["cassandra_age_s"] or 0 for row in rows))


def _missed(rows: list[dict[str, Any]]) -> int:
    """Return the number of seconds without a row."""
    return int(rows[-1]["time"] - rows[0]["time"]) + 1 - len(rows)
