"""Cluster values of one period from `casstat merge`, `casstat top --replay --once` and Prometheus' recording rules.

A demo cluster of two nodes runs under load with an agent for each node and a real Prometheus with the shipped rules.
After five minutes that began at a multiple of five minutes the three are compared. Takes up to twelve minutes.
"""

import csv
import json
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import NamedTuple

from dashboards.rules.burn_rate import BUCKETS

ADDRESS = "127.0.186.1"
PERIOD_S = 300
# The load is even by then, and every rate has its first scrapes.
WARM_UP_S = 20
MB = 2**20
SETS = ("requests", "compaction", "jvm", "disk", "network")

Row = Mapping[str, float | None]


class Check(NamedTuple):
    """A column, the same in PromQL over recorded series, and how far apart the two may be.

    relative  Prometheus scrapes and evaluates at other moments than the agent's ticks.
    """

    column: str
    query: str
    relative: float = 0.03
    absolute: float = 0.05


def of_requests(operation: str, what: str) -> str:
    """Return a recorded series of client requests."""
    return f'sum(cluster_operation:cassandra_client_{what}:rate5m{{operation="{operation}"}})'


def gauge(name: str) -> str:
    """Return the mean of a recorded gauge over the period."""
    return f"sum(avg_over_time({name}[5m]))"


def pool(path: str, name: str, what: str) -> str:
    """Return a recorded gauge of a thread pool."""
    return gauge(f'cluster_path_pool:cassandra_pool_{what}:sum{{path="{path}",pool="{name}"}}')


def latency(operation: str) -> Iterator[Check]:
    """Yield the checks of an operation."""
    word = operation.lower()
    rate, seconds = of_requests(operation, "requests"), of_requests(operation, "request_seconds")
    yield Check(f"{word}s_per_s", rate)
    yield Check(f"{word}_mean_ms", f"1000 * {seconds} / {rate}", 0.05)
    buckets = f'sum by (le) ({BUCKETS}{{operation="{operation}"}})'
    # The agent serves a part of Cassandra's buckets, each 1.2 to 2.5 times as wide as the one below.
    yield Check(f"{word}_p99_ms", f"1000 * histogram_quantile(0.99, {buckets})", 1.0)
    yield Check(f"{word}_timeouts_per_s", of_requests(operation, "request_timeouts"))


CPU = 'sum(cluster_mode:casstat_cpu_seconds:rate5m{{mode=~"{}"}})'
HEAP, LARGEST = (gauge(f"cluster:cassandra_jvm_heap_{what}_bytes:sum") for what in ("used", "max"))
CHECKS = (
    *latency("Read"),
    *latency("Write"),
    Check("compactions_pending", gauge("cluster:cassandra_compaction_pending:sum"), 0.1, 0.2),
    Check("compaction_mb_per_s", f"sum(cluster:cassandra_compaction_bytes:rate5m) / {MB}", 0.1),
    Check("heap_used_mb", f"{HEAP} / {MB}"),
    Check("heap_pct", f"100 * {HEAP} / {LARGEST}"),
    Check("gc_pct", "100 * sum(cluster:cassandra_jvm_gc_seconds:avg_rate5m)", 0.1),
    Check("jvm_cpu_pct", "100 * sum(cluster:cassandra_jvm_cpu_seconds:avg_rate5m)"),
    Check("native_connections", gauge("cluster:cassandra_native_connections:sum")),
    Check("read_stage_active", pool("request", "ReadStage", "active"), 0.3, 0.3),
    Check("read_stage_pending", pool("request", "ReadStage", "pending"), 0.3, 0.3),
    Check("mutation_stage_pending", pool("request", "MutationStage", "pending"), 0.3, 0.3),
    Check("hints_per_s", "sum(cluster:cassandra_hints:rate5m)"),
    Check("peers_unreachable", gauge("cluster:cassandra_endpoints_unreachable:max")),
    # Both nodes are on one machine, which counts once.
    Check("cpu_system_pct", f"100 * {CPU.format('system|irq|softirq')} / {CPU.format('.+')}"),
    Check("disk_writes_per_s", "sum(cluster:node_disk_writes_completed:rate5m)"),
    Check("disk_write_mb_per_s", f"sum(cluster:node_disk_written_bytes:rate5m) / {MB}", 0.05),
    Check("disk_util_pct", "100 * sum(cluster:node_disk_io_time_seconds:avg_rate5m)", 0.05),
    Check("pressure_io_pct", "100 * sum(cluster:node_pressure_io_waiting_seconds:avg_rate5m)", 0.05),
    Check("memory_available_mb", f"{gauge('cluster:node_memory_MemAvailable_bytes:sum')} / {MB}"),
    Check("net_rx_kbit_per_s", "0.008 * sum(cluster:node_network_receive_bytes:rate5m)"),
    Check("process_resident_mb", f"{gauge('cluster:casstat_process_resident_bytes:sum')} / {MB}"),
)


@contextmanager
def demo(folder: Path) -> Iterator[str]:
    """Run the demo cluster; yield the URL of its Prometheus."""
    command = [sys.executable, "-m", "cli", "demo", "up", "--nodes", "2", "--load", "200", "--heap", "400M"]
    command += ["--address", ADDRESS, "--with", "prometheus", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            lines = iter(process.stdout or ())
            for line in lines:
                print(line, end="", flush=True)
                if "Ctrl-C" in line:
                    break
            else:
                raise SystemExit("the demo cluster does not start")
            yield f"http://{ADDRESS}:9090"
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)


def casstat(*arguments: str) -> str:
    """Run a command; return what it prints."""
    command = [sys.executable, "-m", "cli", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def of_merge(recording: str, end_s: int, into: Path) -> dict[str, Row]:
    """Return the rows of `casstat merge` that end at `end_s`, by node."""
    casstat("merge", recording, "-i", str(PERIOD_S), "--until", str(end_s), "-o", str(into))
    with (into / "rows.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if float(row["time"]) == end_s]
    return {row["node"]: {c.column: _number(row.get(c.column, "")) for c in CHECKS} for row in rows}


def _number(text: str) -> float | None:
    return float(text) if text else None


def of_top(journal: str, end_s: int) -> Row:
    """Return the cluster's values of `casstat top --replay --once`."""
    cells: dict[str, float | None] = {}
    for name in SETS:
        period = ["-i", str(PERIOD_S), "--until", str(end_s), "--columns", name]
        frame = json.loads(casstat("top", "--replay", journal, "--once", "--format", "json", *period))
        if frame["time"] != end_s:
            raise SystemExit(f"top shows the period until {frame['time']}, not until {end_s}")
        cells |= frame["cluster"]
    return cells


def of_rules(url: str, query: str, end_s: int) -> float | None:
    """Return the value of a query at the end of the period."""
    asked = urllib.parse.urlencode({"query": query, "time": end_s})
    with urllib.request.urlopen(f"{url}/api/v1/query?{asked}", timeout=30) as answer:  # noqa: S310 - loopback
        result = json.load(answer)["data"]["result"]
    return float(result[0]["value"][1]) if result else None


def is_close(check: Check, merged: float | None, recorded: float | None) -> bool:
    """Return whether the recorded value is that of the merge; a value that one of them lacks must be 0 or absent."""
    if merged is None or recorded is None or recorded != recorded:
        return not merged and not (recorded == recorded and recorded)
    return abs(merged - recorded) <= check.absolute + check.relative * abs(merged)


def _cell(value: float | None) -> str:
    return f"{'-' if value is None else f'{value:.3f}':>12}"


def report(nodes: Mapping[str, Row], top: Row, recorded: Mapping[str, float | None]) -> int:
    """Print a line for each column; return how many differ."""
    cluster = nodes["cluster"]
    names = sorted(name for name in nodes if name != "cluster")
    heads = (*names, "merge", "top", "rules")
    print(f"{'column':24}{''.join(f'{head:>12}' for head in heads)}")
    different = 0
    for check in CHECKS:
        name = check.column
        # Some columns are top's alone.
        merged = cluster[name] if cluster[name] is not None else top.get(name)
        agrees = merged == top.get(name) and is_close(check, merged, recorded[name])
        different += not agrees
        values = (*(nodes[node][name] for node in names), cluster[name], top.get(name), recorded[name])
        print(f"{name:24}{''.join(map(_cell, values))}  {'' if agrees else 'DIFFERENT'}")
    return different


def main() -> None:
    """Compare, and exit with 1 when a value differs."""
    with TemporaryDirectory(prefix="casstat-aggregation-") as folder, demo(Path(folder)) as url:
        end_s = (int(time.time() + WARM_UP_S) // PERIOD_S + 2) * PERIOD_S
        wait_s = end_s + 6 - time.time()
        print(f"waiting {wait_s:.0f} s for the end of five whole minutes", flush=True)
        time.sleep(wait_s)
        recorded = {check.column: of_rules(url, check.query, end_s + 5) for check in CHECKS}
        recording = Path(folder) / "recording"
        for journal in filter(Path.is_dir, Path(folder).glob("agent-*")):
            copytree(journal, recording / journal.name)
        nodes = of_merge(str(recording), end_s, Path(folder) / "merged")
        different = report(nodes, of_top(str(recording), end_s), recorded)
    print(f"{len(CHECKS)} columns, {different} different")
    raise SystemExit(different > 0)


if __name__ == "__main__":
    main()
