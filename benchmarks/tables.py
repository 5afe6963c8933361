"""Client and node CPU time per tick on nodes with many tables, compared with ten tables."""

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.cost import sampler
from benchmarks.figures import Figure
from benchmarks.node import loaded, real_node

TABLES = (10, 200, 1000)
BUSY = 20
# Operations per second: enough to make some tables more active than others, but too few to distort the measured CPU
# time.
RATE = 20
MAX_RATIO = 2.0
# After this time, all tables are ranked and the JVM has compiled the code that serves the requests.
WARM_S = 45
WARM_TICKS = 600


def run() -> Iterator[Figure]:
    """Measure the default command with `--tables 10`, and the sampling of all metrics with the default table budget."""
    fewest_s: dict[str, float] = {}
    for tables in TABLES:
        with real_node(tables, heap="1536M") as node, loaded(RATE, min(tables, BUSY)):
            url = node.spec.jolokia_url
            warm_up = [sys.executable, "-m", "cli", "0.1", str(WARM_TICKS), "--tables", "10", "--jolokia", url]
            subprocess.run(warm_up, check=True, stdout=subprocess.DEVNULL)
            kinds = {
                "line --tables 10": [sys.executable, "-m", "cli", "1", "--tables", "10", "--jolokia", url],
                "all metrics": [sys.executable, "-m", "benchmarks.all_metrics", url],
            }
            for kind, command in kinds.items():
                client_s, node_s = sampler(node, command, warm_s=WARM_S)
                cost_s = client_s + node_s
                yield Figure(f"{tables} tables: {kind}, client", 1000 * client_s, "ms CPU/tick")
                yield Figure(f"{tables} tables: {kind}, node", 1000 * node_s, "ms CPU/tick")
                ratio = cost_s / fewest_s.setdefault(kind, cost_s)
                yield Figure(f"{tables} tables: {kind}, compared with {TABLES[0]} tables", ratio, "times", MAX_RATIO)
