"""CPU of one sample, casstat's own plus the node's, against the four nodetool calls of the old script."""

import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

import psutil

from benchmarks.figures import Figure
from benchmarks.node import answering_s, cpu_s, jvm, real_node
from cli.demo.demo_node import Node
from cli.demo.node_files import OPENINGS

TABLES = (10, 200)
CALLS = (["tablestats"], ["tpstats"], ["tablehistograms", "bench", "t000"], ["compactionstats"])
NODETOOL_SAMPLES = 3
WARM_S = 30
SAMPLES = 60
LEAST_RATIO = 300


def run() -> Iterator[Figure]:
    """Measure nodetool, the line and the whole catalogue, with few and with many tables."""
    for tables in TABLES:
        with real_node(tables) as node:
            time.sleep(WARM_S)
            idle_s = idle(node)
            nodetool = _nodetool(node, idle_s)
            yield Figure(f"{tables} tables: nodetool x 4, own", 1000 * nodetool[0], "ms CPU a sample")
            yield Figure(f"{tables} tables: nodetool x 4, node", 1000 * nodetool[1], "ms CPU a sample")
            url = node.spec.jolokia_url
            kinds = {
                "line": [sys.executable, "-m", "cli", "1", "--format", "json", "--jolokia", url],
                "whole catalogue": [sys.executable, "-m", "benchmarks.everything", url],
            }
            for kind, command in kinds.items():
                own_s, node_s = sampler(node, command)
                yield Figure(f"{tables} tables: casstat, {kind}, own", 1000 * own_s, "ms CPU a sample")
                yield Figure(f"{tables} tables: casstat, {kind}, node", 1000 * node_s, "ms CPU a sample")
                ratio = sum(nodetool) / (own_s + node_s)
                yield Figure(f"{tables} tables: nodetool x 4 / casstat, {kind}", ratio, "times", LEAST_RATIO, True)


def idle(node: Node) -> float:
    """Return the node's CPU a second when nobody asks."""
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
    lasted_s = time.monotonic() - before[2]
    own_s = _children_s() - before[0]
    node_s = cpu_s(jvm(node)) - before[1] - idle_s * lasted_s
    return own_s / NODETOOL_SAMPLES, node_s / NODETOOL_SAMPLES


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def sampler(node: Node, command: Sequence[str], warm_s: float = WARM_S) -> tuple[float, float]:
    """Run a sampler; return its own CPU a second, and that of the node's threads which answer it."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as running:
        try:
            process = psutil.Process(running.pid)
            time.sleep(warm_s)
            before = cpu_s(process), answering_s(jvm(node)), time.monotonic()
            time.sleep(SAMPLES)
            lasted_s = time.monotonic() - before[2]
            own_s = (cpu_s(process) - before[0]) / lasted_s
            node_s = (answering_s(jvm(node)) - before[1]) / lasted_s
        finally:
            running.terminate()
    # The kernel counts a process' CPU in ticks of 10 ms: what is below one in the whole minute is not known to be less.
    return max(own_s, 0.01 / SAMPLES), node_s
