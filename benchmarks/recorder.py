"""Cost of `casstat record`: CPU time compared with a bare loop of the same reads, and effect on throughput and p99."""

import json
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import suppress
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev

import psutil

from benchmarks.cost import SAMPLES, WARM_S, sampler
from benchmarks.figures import Figure
from benchmarks.node import ADDRESS, answering_s, cpu_s, jvm, loaded, real_node
from cli.setup.demo.demo_node import Node
from collector.model.histogram import Buckets, quantile, upper_bounds_of
from collector.node.jolokia.client import HEADERS

TABLES, RATE = 10, 300
ROUNDS = 3
MAX_RATIO = 1.2
PAIRS, LOAD_S = 12, 10
# Two-sided 95% quantile of Student's t distribution with PAIRS - 1 = 11 degrees of freedom.
T_95 = 2.201
LATENCY = "org.apache.cassandra.metrics:type=ClientRequest,scope=Read,name=Latency"


def run() -> Iterator[Figure]:
    """Measure a node under load, recorded through Jolokia by an agent that `record` starts."""
    with real_node(TABLES) as node:
        with loaded(RATE):
            command = [sys.executable, "-m", "benchmarks.recorded_reads", node.spec.jolokia_url]
            costs = [(sum(sampler(node, command)), _recorder(node)) for _ in range(ROUNDS)]
            bare_s, record_s = map(fmean, zip(*costs, strict=True))
        yield Figure("bare loop, client and node", 1000 * bare_s, "ms CPU/tick")
        yield Figure("casstat record, client and node", 1000 * record_s, "ms CPU/tick")
        yield Figure("casstat record / bare loop", record_s / bare_s, "times", MAX_RATIO)
        yield from _differences(node)


def _recorder(node: Node) -> float:
    """Return the total CPU time per second of a recorder's processes and of the node's threads that serve it."""
    with tempfile.TemporaryDirectory() as folder:
        waiting = ["sleep", str(WARM_S + SAMPLES + 10)]
        with subprocess.Popen(_record(node, Path(folder, "run"), waiting), stdout=subprocess.DEVNULL) as running:
            process = psutil.Process(running.pid)
            time.sleep(WARM_S)
            before = _tree_s(process), answering_s(jvm(node)), time.monotonic()
            time.sleep(SAMPLES)
            used_s = _tree_s(process) - before[0] + answering_s(jvm(node)) - before[1]
            elapsed_s = time.monotonic() - before[2]
            if running.poll() is not None:
                raise SystemExit("casstat record: ended during the measurement")
            return used_s / elapsed_s


def _tree_s(process: psutil.Process) -> float:
    """Return the CPU time of a process and its descendants."""
    used_s = 0.0
    for member in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            used_s += cpu_s(member)
    return used_s


def _record(node: Node, folder: Path, command: Sequence[str]) -> list[str]:
    options = ["--quiet", "-o", str(folder), "--", *command]
    return [sys.executable, "-m", "cli", "record", node.spec.jolokia_url, *options]


def _differences(node: Node) -> Iterator[Figure]:
    """Run the load at full speed in pairs, one run recorded and one not, in random order, and compare each pair."""
    order = random.Random(1)  # noqa: S311 - not for secrets
    throughputs, p99s = [], []
    _loaded(node, recorded=False)
    for _ in range(PAIRS):
        results = {recorded: _loaded(node, recorded=recorded) for recorded in order.sample([True, False], 2)}
        throughputs.append(results[True][0] / results[False][0] - 1)
        p99s.append(results[True][1] / results[False][1] - 1)
    for name, shares in (("throughput", throughputs), ("p99 of reads", p99s)):
        margin = T_95 * stdev(shares) / sqrt(PAIRS)
        yield Figure(f"{name} with record relative to without, {PAIRS} pairs, mean", 100 * fmean(shares), "%")
        yield Figure(f"{name}: 95% confidence interval, plus or minus", 100 * margin, "%")


def _loaded(node: Node, *, recorded: bool) -> tuple[float, float]:
    """Run the load at full speed; return its operations per second and the p99 of reads in milliseconds."""
    load = [sys.executable, "-m", "cli.setup.demo.load_generator", ADDRESS, "--keyspace", "bench"]
    load += ["--tables", str(TABLES), "--rate", "1e6", "--seconds", str(LOAD_S)]
    before = _buckets(node)
    with tempfile.TemporaryDirectory() as folder:
        command = _record(node, Path(folder, "run"), load) if recorded else load
        # As with `record`, the load has a session of its own, because the kernel may divide CPU time by session.
        done = subprocess.run(
            command,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
    counts = json.loads(done.stdout)
    increases = tuple(after - former for former, after in zip(before, _buckets(node), strict=True))
    p99_s = quantile(Buckets(upper_bounds_of("seconds", len(increases)), increases), 0.99)
    return (counts["reads"] + counts["writes"]) / LOAD_S, 1000 * (p99_s or 0.0)


def _buckets(node: Node) -> list[int]:
    """Return the number of reads in each latency bucket since the node started."""
    request = {"type": "exec", "mbean": LATENCY, "operation": "values()"}
    posted = urllib.request.Request(node.spec.jolokia_url, json.dumps(request).encode(), HEADERS)  # noqa: S310 - loopback
    with urllib.request.urlopen(posted, timeout=20) as answer:  # noqa: S310
        counts: list[int] = json.load(answer)["value"]
    return counts
