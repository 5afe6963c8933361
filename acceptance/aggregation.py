"""Compare the cluster values of `casstat merge`, `casstat top --replay --once` and Prometheus recording rules.

A demo cluster of two nodes runs under load, with one agent per node and a real Prometheus that evaluates the shipped
rules. All values cover the same five-minute period, aligned to a multiple of five minutes. The script takes up to
twelve minutes.
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

from dashboards.promql import selector
from dashboards.rules.alert import BUCKETS
from dashboards.signals.jvm import PAUSING

ADDRESS = "127.0.186.1"
PERIOD_S = 300
# After this time, the load is steady and two scrapes are available for every rate.
WARM_UP_S = 20
MB = 2**20
SETS = ("requests", "compaction", "jvm", "disk", "network")

Row = Mapping[str, float | None]


class Check(NamedTuple):
    """A column, the equivalent PromQL query over recorded series, and the allowed difference.

    The allowed difference is `absolute` plus `relative` times the merged value. It is not 0, because Prometheus does
    not scrape or evaluate exactly at the agent's ticks.
    """

    column: str
    query: str
    relative: float = 0.03
    absolute: float = 0.05


def request_rate(operation: str, metric: str) -> str:
    """Return the query for the recorded five-minute rate of a client request metric."""
    return f'sum(cluster_operation:cassandra_client_{metric}:rate5m{{operation="{operation}"}})'


def gauge(name: str) -> str:
    """Return the query for the mean of a recorded gauge over the period."""
    return f"sum(avg_over_time({name}[5m]))"


def pool(path: str, name: str, state: str) -> str:
    """Return the query for the mean of a recorded thread pool gauge over the period."""
    return gauge(f'cluster_path_pool:cassandra_pool_{state}:sum{{path="{path}",pool="{name}"}}')


def latency(operation: str) -> Iterator[Check]:
    """Yield the checks for one operation: rate, latencies and timeouts."""
    prefix = operation.lower()
    rate, seconds = request_rate(operation, "requests"), request_rate(operation, "request_seconds")
    yield Check(f"{prefix}s_per_s", rate)
    yield Check(f"{prefix}_mean_ms", f"1000 * {seconds} / {rate}", 0.05)
    buckets = f'sum by (le) ({BUCKETS}{{operation="{operation}"}})'
    # The agent serves only some of Cassandra's upper bounds. Many of those are about twice the previous one, so
    # percentiles computed from these buckets are coarse.
    yield Check(f"{prefix}_p99_ms", f"1000 * histogram_quantile(0.99, {buckets})", 1.0)
    yield Check(f"{prefix}_timeouts_per_s", request_rate(operation, "request_timeouts"))


CPU = 'sum(cluster_mode:casstat_cpu_seconds:rate5m{{mode=~"{}"}})'
HEAP_USED, HEAP_MAX = (gauge(f"cluster:cassandra_jvm_heap_{state}_bytes:sum") for state in ("used", "max"))
CHECKS = (
    *latency("Read"),
    *latency("Write"),
    Check("compactions_pending", gauge("cluster:cassandra_compaction_pending:sum"), 0.1, 0.2),
    Check("compaction_mb_per_s", f"sum(cluster:cassandra_compaction_bytes:rate5m) / {MB}", 0.1),
    Check("heap_used_mb", f"{HEAP_USED} / {MB}"),
    Check("heap_pct", f"100 * {HEAP_USED} / {HEAP_MAX}"),
    Check("gc_pct", f"100 * sum({selector('cluster:cassandra_jvm_gc_seconds:avg_rate5m', PAUSING)})", 0.1),
    Check("jvm_cpu_pct", "100 * sum(cluster:cassandra_jvm_cpu_seconds:avg_rate5m)"),
    Check("native_connections", gauge("cluster:cassandra_native_connections:sum")),
    Check("read_stage_active", pool("request", "ReadStage", "active"), 0.3, 0.3),
    Check("read_stage_pending", pool("request", "ReadStage", "pending"), 0.3, 0.3),
    Check("mutation_stage_pending", pool("request", "MutationStage", "pending"), 0.3, 0.3),
    Check("hints_per_s", "sum(cluster:cassandra_hints:rate5m)"),
    Check("peers_unreachable", gauge("cluster:cassandra_endpoints_unreachable:max")),
    # Both nodes run on one machine, so its metrics must be counted only once.
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
    """Run the demo cluster; yield the URL of its Prometheus server."""
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
                raise SystemExit("the demo cluster did not start")
            yield f"http://{ADDRESS}:9090"
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)


def casstat(*arguments: str) -> str:
    """Run a casstat command and return its output."""
    command = [sys.executable, "-m", "cli", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def merged_rows(recording: str, end_s: int, into: Path) -> dict[str, Row]:
    """Return the rows of `casstat merge` for the period that ends at `end_s`, keyed by node."""
    casstat("merge", recording, "-i", str(PERIOD_S), "--until", str(end_s), "-o", str(into))
    with (into / "rows.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if float(row["time"]) == end_s]
    return {row["node"]: {c.column: _number(row.get(c.column, "")) for c in CHECKS} for row in rows}


def _number(text: str) -> float | None:
    return float(text) if text else None


def top_row(journal: str, end_s: int) -> Row:
    """Return the cluster's row of `casstat top --replay --once`. Raises SystemExit if it shows a different period."""
    cells: dict[str, float | None] = {}
    for name in SETS:
        period = ["-i", str(PERIOD_S), "--until", str(end_s), "--columns", name]
        frame = json.loads(casstat("top", "--replay", journal, "--once", "--format", "json", *period))
        if frame["time"] != end_s:
            raise SystemExit(f"casstat top: shows the period that ends at {frame['time']}, expected {end_s}")
        cells |= frame["cluster"]
    return cells


def recorded_value(url: str, query: str, end_s: int) -> float | None:
    """Return a query's value at `end_s`, or None if the result is empty."""
    parameters = urllib.parse.urlencode({"query": query, "time": end_s})
    with urllib.request.urlopen(f"{url}/api/v1/query?{parameters}", timeout=30) as response:  # noqa: S310 - loopback
        result = json.load(response)["data"]["result"]
    return float(result[0]["value"][1]) if result else None


def is_close(check: Check, merged: float | None, recorded: float | None) -> bool:
    """Return whether the two values agree. If one of them is absent, the other must be absent or 0."""
    if merged is None or recorded is None or recorded != recorded:
        return not merged and not (recorded == recorded and recorded)
    return abs(merged - recorded) <= check.absolute + check.relative * abs(merged)


def _cell(value: float | None) -> str:
    return f"{'-' if value is None else f'{value:.3f}':>12}"


def report(nodes: Mapping[str, Row], top: Row, recorded: Mapping[str, float | None]) -> int:
    """Print a line for each column; return the number of columns that differ."""
    cluster = nodes["cluster"]
    names = sorted(name for name in nodes if name != "cluster")
    headings = (*names, "merge", "top", "rules")
    print(f"{'column':24}{''.join(f'{heading:>12}' for heading in headings)}")
    different = 0
    for check in CHECKS:
        name = check.column
        # `casstat merge` lacks some columns; for those, compare the rule's value with that of `casstat top`.
        merged = cluster[name] if cluster[name] is not None else top.get(name)
        agrees = merged == top.get(name) and is_close(check, merged, recorded[name])
        different += not agrees
        values = (*(nodes[node][name] for node in names), cluster[name], top.get(name), recorded[name])
        print(f"{name:24}{''.join(map(_cell, values))}  {'' if agrees else 'DIFFERENT'}")
    return different


def main() -> None:
    """Compare the values; exit with status 1 if a column differs."""
    with TemporaryDirectory(prefix="casstat-aggregation-") as folder, demo(Path(folder)) as url:
        end_s = (int(time.time() + WARM_UP_S) // PERIOD_S + 2) * PERIOD_S
        wait_s = end_s + 6 - time.time()
        print(f"waiting {wait_s:.0f} s for the end of the five-minute period", flush=True)
        time.sleep(wait_s)
        recorded = {check.column: recorded_value(url, check.query, end_s + 5) for check in CHECKS}
        recording = Path(folder) / "recording"
        for journal in filter(Path.is_dir, Path(folder).glob("agent-*")):
            copytree(journal, recording / journal.name)
        nodes = merged_rows(str(recording), end_s, Path(folder) / "merged")
        different = report(nodes, top_row(str(recording), end_s), recorded)
    print(f"{len(CHECKS)} columns, {different} different")
    raise SystemExit(different > 0)


if __name__ == "__main__":
    main()
