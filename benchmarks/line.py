"""CPU time and memory of the default command at a one-second interval, on a node under load."""

import subprocess
import sys
import time
from collections.abc import Iterator

import psutil

from benchmarks.figures import Figure
from benchmarks.node import cpu_s, loaded, real_node

SECONDS = 60
MAX_CPU_MS = 5
MAX_MIB = 40
HEAVY = ("rich", "polars", "pandas", "pyarrow", "numpy", "influxdb_client", "cassandra", "prometheus_client")


def run() -> Iterator[Figure]:
    """Measure the command with the default columns, with -s -p and with --wide; count its heavy imports."""
    with real_node(10) as node, loaded(300):
        for flags in ([], ["-s", "-p"], ["--wide"]):
            yield from _line([*flags, "--jolokia", node.spec.jolokia_url], " ".join(["casstat 1", *flags]))
        heavy = _heavy_imports(["--jolokia", node.spec.jolokia_url])
    yield Figure("heavy packages imported by `casstat`", len(heavy), "packages", 0)


def _line(arguments: list[str], name: str) -> Iterator[Figure]:
    command = [sys.executable, "-m", "cli", "1", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as running:
        try:
            process = psutil.Process(running.pid)
            time.sleep(5)
            before_s = cpu_s(process)
            time.sleep(SECONDS)
            used_s = cpu_s(process) - before_s
            resident_mb = process.memory_info().rss / 2**20
            if running.poll() is not None:
                raise SystemExit(f"{name}: ended during the measurement")
        finally:
            running.terminate()
    yield Figure(f"{name}: CPU", 1000 * used_s / SECONDS, "ms/tick", MAX_CPU_MS)
    yield Figure(f"{name}: resident memory", resident_mb, "MiB", MAX_MIB)


def _heavy_imports(options: list[str]) -> set[str]:
    """Return the heavy packages that the command imports, at its start or later, while it prints two rows."""
    command = [sys.executable, "-X", "importtime", "-m", "cli", "1", "2", *options]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stderr.splitlines()
    imported = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}
    if "cli.main" not in imported:
        raise SystemExit("the command did not list its imports")
    return {name.partition(".")[0] for name in imported}.intersection(HEAVY)
