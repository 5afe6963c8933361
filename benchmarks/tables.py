"""CPU of a tick, casstat's own plus the node's, on nodes with many tables, against one with ten."""

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.cost import sampler
from benchmarks.figures import Figure
from benchmarks.node import loaded, real_node

TABLES = (10, 200, 1000)
BUSY = 20
# So that there are most active tables, and the node's own work does not hide what asking it costs.
RATE = 20
MOST_TIMES = 2.0
# All tables have been ranked by then, and the node's JVM has compiled what is asked of it.
WARM_S = 45
WARM_TICKS = 600


def run() -> Iterator[Figure]:
    """Measure the line with single tables, and the whole catalogue, at the default budget."""
    few: dict[str, float] = {}
    for tables in TABLES:
        with real_node(tables, heap="1536M") as node, loaded(RATE, min(tables, BUSY)):
            url = node.spec.jolokia_url
            quick = [sys.executable, "-m", "cli", "0.1", str(WARM_TICKS), "--tables", "10", "--jolokia", url]
            subprocess.run(quick, check=True, stdout=subprocess.DEVNULL)
            kinds = {
                "line --tables 10": [sys.executable, "-m", "cli", "1", "--tables", "10", "--jolokia", url],
                "whole catalogue": [sys.executable, "-m", "benchmarks.everything", url],
            }
            for kind, command in kinds.items():
                own_s, node_s = sampler(node, command, warm_s=WARM_S)
                cost_s = own_s + node_s
                yield Figure(f"{tables} tables: {kind}, own", 1000 * own_s, "ms CPU a tick")
                yield Figure(f"{tables} tables: {kind}, node", 1000 * node_s, "ms CPU a tick")
                times = cost_s / few.setdefault(kind, cost_s)
                yield Figure(f"{tables} tables: {kind}, against {TABLES[0]} tables", times, "times", MOST_TIMES)
