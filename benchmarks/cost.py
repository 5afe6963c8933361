"""CPU of one sample, casstat's own plus the node's, against the four nodetool calls of the old script."""

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

import psutil

from benchmarks.figures import Figure
from benchmarks.node import cpu_s, jvm, real_node
from cli.demo.node import OPENINGS, Node

TABLES = (10, 200)
CALLS = (["tablestats"], ["tpstats"], ["tablehistograms", "bench", "t000"], ["compactionstats"])
NODETOOL_SAMPLES = 3
WARM_S = 30
IDLE_S = 60
TURNS, TURN_S, SETTLE_S = 4, 12, 2
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
    time.sleep(IDLE_S)
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
    """Run a sampler; return its own CPU a second, and by how much the node's is more than while it stands still.

    Both in turns: what a young node does by itself becomes less for many minutes.
    """
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as running:
        try:
            process = psutil.Process(running.pid)
            time.sleep(warm_s)
            turns = [_turn(process, node) for _ in range(TURNS)]
        finally:
            running.kill()
    own_s, asked_s, alone_s = (statistics.mean(each) for each in zip(*turns, strict=True))
    # The kernel counts in ticks of 10 ms: what is below one in all the time is not known to be less.
    least_s = 0.01 / (TURNS * TURN_S)
    return max(own_s, least_s), max(asked_s - alone_s, least_s)


def _turn(process: psutil.Process, node: Node) -> tuple[float, float, float]:
    """Return CPU a second: the sampler's own, the node's while it is asked, and while it is not."""
    own_s, asked_s = _rates([process, jvm(node)])
    process.suspend()
    time.sleep(SETTLE_S)
    (alone_s,) = _rates([jvm(node)])
    process.resume()
    time.sleep(SETTLE_S)
    return own_s, asked_s, alone_s


def _rates(processes: Sequence[psutil.Process]) -> list[float]:
    before, began_s = [cpu_s(each) for each in processes], time.monotonic()
    time.sleep(TURN_S)
    lasted_s = time.monotonic() - began_s
    return [(cpu_s(each) - used_s) / lasted_s for each, used_s in zip(processes, before, strict=True)]
