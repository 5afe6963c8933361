"""Find out how many simulated nodes real stores take on this machine, and print a Markdown table.

The number of nodes grows until the store or `casstat simulate` itself falls behind. Each row takes three minutes.
Arguments are the names of the stores (all by default) and the numbers of nodes; INTERVAL in the environment is the
interval in seconds.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from acceptance.store_measurement import STORES, Measured, SimulatedLoad

NODES = (25, 50, 100, 200, 300, 400)
INTERVAL_S = float(os.environ.get("INTERVAL", "1"))
# Slow metrics are complete only after their second reading.
WARM_UP_S, MEASURED_S = 130.0, 40.0
HEADER = "| store | nodes | samples/s | store CPU % | store MiB | simulator CPU % | ticks % | lag s | limit |"


def row(store: str, measured: Measured) -> str:
    """Return a row of the table."""
    cells = [store, measured.load.nodes, round(measured.samples_per_s), round(measured.store_cpu_pct)]
    cells += [round(measured.store_bytes / 2**20), round(measured.simulator_cpu_pct), round(100 * measured.ticks_share)]
    return f"| {' | '.join(map(str, [*cells, round(measured.lag_s, 1), measured.limit or '-']))} |"


def main(arguments: Sequence[str]) -> int:
    """Measure all stores and print the table; return 1 if a store falls behind with the fewest nodes."""
    counts = [int(word) for word in arguments if word.isdecimal()] or list(NODES)
    names = [word for word in arguments if not word.isdecimal()] or list(STORES)
    failed = False
    print(f"interval {INTERVAL_S:g} s, {psutil.cpu_count()} CPUs\n\n{HEADER}\n|{'---|' * 9}", flush=True)
    for name in names:
        for nodes in counts:
            with TemporaryDirectory() as folder:
                load = SimulatedLoad(nodes, INTERVAL_S, WARM_UP_S, MEASURED_S)
                measured = STORES[name](Path(folder, "store"), load)
            print(row(name, measured), flush=True)
            failed |= nodes == counts[0] and measured.limit == "store"
            if measured.limit:
                break
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
