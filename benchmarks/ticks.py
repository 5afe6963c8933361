"""How punctual ticks are on an idle machine, through nodetool, and while all CPUs are busy."""

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
MOST_LATE_MS = 5
BURN = "while True: pass"


def run() -> Iterator[Figure]:
    """Measure on a node that idles, then on one under full load with every CPU also burnt by a loop."""
    with real_node(10) as node:
        time.sleep(30)
        jolokia = ["--jolokia", node.spec.jolokia_url]
        idle = _rows(jolokia, IDLE_TICKS)
        yield Figure("idle: lateness, median", _percentile(idle, 0.5), "ms")
        yield Figure("idle: lateness, 99th percentile", _percentile(idle, 0.99), "ms", MOST_LATE_MS)
        with loaded(100):
            slow = _rows(["--source", "nodetool", "-m", str(node.spec.jmx_port)], NODETOOL_S)
        yield Figure("nodetool: lateness, 99th percentile", _percentile(slow, 0.99), "ms")
        yield Figure(f"nodetool: ticks missed in {NODETOOL_S} s", _missed(slow), "ticks", 0)
        yield Figure("nodetool: oldest figure of Cassandra's", _oldest_s(slow), "s")
        burners = [
            subprocess.Popen([sys.executable, "-c", BURN], stdout=subprocess.DEVNULL)
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
    yield Figure("busy: lateness, 99th percentile", _percentile(busy, 0.99), "ms")
    yield Figure(f"busy: ticks missed in {BUSY_S} s", _missed(busy), "ticks", 0)
    yield Figure(
        "busy: ticks without an answer from the node", sum(row["reads_per_s"] is None for row in busy), "ticks"
    )


def _rows(options: Sequence[str], count: int) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "cli", "1", str(count), "--format", "json", *options]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(text) for text in out.splitlines()]


def _percentile(rows: list[dict[str, Any]], q: float) -> float:
    late = sorted(row["late_ms"] for row in rows)
    return float(late[math.ceil(q * len(late)) - 1])


def _oldest_s(rows: list[dict[str, Any]]) -> float:
    """Return the greatest age in a row, once the first report has come."""
    return float(max(row["cassandra_age_s"] or 0 for row in rows))


def _missed(rows: list[dict[str, Any]]) -> int:
    """Count the seconds without a row of their own."""
    return int(rows[-1]["time"] - rows[0]["time"]) + 1 - len(rows)
