"""`python -m benchmarks [NAME …]`: run all benchmarks or the named ones, and print one line per figure."""

import platform
import signal
import sys
import time

import psutil

from benchmarks import (
    api,
    cost,
    exposition,
    fetch,
    finish,
    lateness,
    line,
    merge,
    plots,
    recorder,
    recordings,
    replay,
    runs,
    shipping,
    startup,
    tables,
    telegraf,
    ticks,
    top,
)

BENCHMARKS = {
    "startup": startup.run,
    "line": line.run,
    "cost": cost.run,
    "tables": tables.run,
    "ticks": ticks.run,
    "exposition": exposition.run,
    "recorder": recorder.run,
    "recordings": recordings.run,
    "merge": merge.run,
    "replay": replay.run,
    "plots": plots.run,
    "runs": runs.run,
    "telegraf": telegraf.run,
    "api": api.run,
    "shipping": shipping.run,
    "fetch": fetch.run,
    "finish": finish.run,
    "lateness": lateness.run,
    "top": top.run,
}


def main(names: list[str]) -> int:
    """Run the benchmarks and return the number of figures that are not within their bounds."""
    print(
        f"machine: {psutil.cpu_count()} CPUs, {psutil.virtual_memory().total / 2**30:.0f} GiB, "
        f"Linux {platform.release()}, Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}",
        flush=True,
    )
    # Turn SIGTERM into a normal exit, so that the context managers stop the nodes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    missed = 0
    for name in names or list(BENCHMARKS):
        print(f"\n{name}: {sys.modules[BENCHMARKS[name].__module__].__doc__}", flush=True)
        for figure in BENCHMARKS[name]():
            print(f"  {figure}", flush=True)
            missed += not figure.is_within_bound
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
