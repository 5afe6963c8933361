"""Client and node CPU time per sample, compared with running four nodetool commands."""

import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

import psutil

from benchmarks.figures import Figure
from benchmarks.node import answering_s, cpu_s, jvm, real_node
from cli.setup.demo.demo_node import OPENINGS, Node

TABLES = (10, 200)
CALLS = (["tablestats"], ["tpstats"], ["tablehistograms", "bench", "t000"], ["compactionstats"])
NODETOOL_SAMPLES = 3
WARM_S = 30
SAMPLES = 60
MIN_RATIO = 300


def run() -> Iterator[Figure]:
    """Measure nodetool, the default command and the sampling of all metrics, with few and with many tables."""
    for tables in TABLES:
        with real_node(tables) as node:
            time.sleep(WARM_S)
            idle_s = idle(node)
            nodetool = _nodetool(node, idle_s)
            yield Figure(f"{tables} tables: nodetool x 4, client", 1000 * nodetool[0], "ms CPU/sample")
            yield Figure(f"{tables} tables: nodetool x 4, node", 1000 * nodetool[1], "ms CPU/sample")
            url = node.spec.jolokia_url
            kinds = {
                "line": [sys.executable, "-m", "cli", "1", "--format", "json", "--jolokia", url],
                "all metrics": [sys.executable, "-m", "benchmarks.all_metrics", url],
            }
            for kind, command in kinds.items():
                client_s, node_s = sampler(node, command)
                yield Figure(f"{tables} tables: casstat, {kind}, client", 1000 * client_s, "ms CPU/sample")
                yield Figure(f"{tables} tables: casstat, {kind}, node", 1000 * node_s, "ms CPU/sample")
                ratio = sum(nodetool) / (client_s + node_s)
                yield Figure(f"{tables} tables: nodetool x 4 / casstat, {kind}", ratio, "times", MIN_RATIO, True)


def idle(node: Node) -> float:
    """Return the CPU time that the node uses per second without clients."""
    before_s, began_s = cpu_s(jvm(node)), time.monotonic()
    time.sleep(SAMPLES)
    return (cpu_s(jvm(node)) - before_s) / (time.monotonic() - began_s)


def _nodetool(node: Node, idle_s: float) -> tuple[float, float]:
    spec = node.spec
    java = [str(spec.java), *OPENINGS, "-cp", f"{spec.home}/conf:{spec.jars}/*", "org.apache.cassandra.tools.NodeTool"]
    before = _children_s(), cpu_s(jvm(node)), time.monotonic()
    for _ in range(NODETOOL_SAMPLES):
        for call in CALLS:
            command = [*java, "-h", "127.0.0.1", "-p", str(spec.jmx_port), *call]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    elapsed_s = time.monotonic() - before[2]
    client_s = _children_s() - before[0]
    node_s = cpu_s(jvm(node)) - before[1] - idle_s * elapsed_s
    return client_s / NODETOOL_SAMPLES, node_s / NODETOOL_SAMPLES


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def sampler(node: Node, command: Sequence[str], warm_s: float = WARM_S) -> tuple[float, float]:
    """Run a sampler; return the CPU time per second of its process, and of the node's threads that serve it.

    Raises SystemExit if the sampler ends early.
    """
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as running:
        try:
            process = psutil.Process(running.pid)
            time.sleep(warm_s)
            before = cpu_s(process), answering_s(jvm(node)), time.monotonic()
            time.sleep(SAMPLES)
            elapsed_s = time.monotonic() - before[2]
            client_s = (cpu_s(process) - before[0]) / elapsed_s
            node_s = (answering_s(jvm(node)) - before[1]) / elapsed_s
            if running.poll() is not None:
                raise SystemExit(f"{' '.join(command[:4])}: ended during the measurement")
        finally:
            running.terminate()
    # The kernel counts CPU time in units of 10 ms, so assume that the process used at least one unit.
    return max(client_s, 0.01 / SAMPLES), node_s
