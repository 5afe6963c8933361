"""Search twice for the capacity of a real node, and compare the results.

One node and its agent run on processor 0; the load generator, latte, runs on processor 1 under `casstat capacity`. The
speed of the processors of a virtual machine varies by more than the precision of a search, so something else limits
the node: it acknowledges writes in groups, every WINDOW_MS, and WRITERS threads wait for that. Its capacity is
therefore just below WRITERS per WINDOW_MS. The 95% intervals of the two searches must overlap and contain values
between MIN_SHARE of that number and all of it. With OUTPUT in the environment, both searches are copied to that
directory. Takes about a quarter of an hour.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from acceptance.client_hosts import PLAN, cluster, latte
from acceptance.saturation import GENERATOR_CPU, TASKSET, pin, wait_until_idle
from tests.real.programs import program

NODE = replace(PLAN, nodes=1)
WINDOW_MS, WRITERS, MIN_SHARE = 20, 32, 0.85
LIMIT_PER_S = 1000 * WRITERS / WINDOW_MS
# Cassandra reads these settings instead of those in cassandra.yaml.
SETTINGS = {
    "commitlog_sync": "group",
    "commitlog_sync_period": "0ms",
    "commitlog_sync_group_window": f"{WINDOW_MS}ms",
    "concurrent_writes": WRITERS,
}
# Below its capacity, a node acknowledges a write after one window or two.
RATES, OBJECTIVES = "400..6400", ("client_p95_ms < 60", "error_share < 0.001")
# An overloaded node must exceed the objective before the load generator has all requests under way.
STEP, CONFIRMATION, CONCURRENCY, NODES_WARM_UP_S = "20s", "60s", 512, 60
WORKLOAD = """
const ROWS = 100000;
const KEYSPACE = "CREATE KEYSPACE IF NOT EXISTS latte
    WITH REPLICATION = { 'class' : 'SimpleStrategy', 'replication_factor' : 1 }";

pub async fn schema(ctx) {
    ctx.execute(KEYSPACE).await?;
    ctx.execute("CREATE TABLE IF NOT EXISTS latte.numbers(id bigint PRIMARY KEY)").await?;
}

pub async fn prepare(ctx) { ctx.prepare("insert", "INSERT INTO latte.numbers(id) VALUES (:id)").await? }

pub async fn run(ctx, i) { ctx.execute_prepared("insert", [latte::hash(i) % ROWS]).await? }
"""


def searched(folder: Path, workload: Path) -> dict[str, Any]:
    """Search for the capacity; return the content of `results.json`."""
    result = f"{folder}-{{rate}}.json"
    command = [TASKSET, "-c", GENERATOR_CPU, latte(), "run", str(workload), NODE.address, "-t", "1", "--quiet"]
    command += ["-p", str(CONCURRENCY), "--rate", "{rate}", "--duration", "{duration}s", "--output", result]
    objectives = [word for objective in OBJECTIVES for word in ("--objective", objective)]
    options = ["-o", str(folder), "--rate", RATES, *objectives, "--step", STEP, "--confirm", CONFIRMATION, "-q"]
    words = program("capacity", *NODE.addresses(), *options, "--client", result, "--", *command)
    subprocess.run(words, check=True, cwd=folder.parent)
    content: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return content


def main() -> int:
    """Run the searches; return the exit status."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    problems = []
    settings = [f"-Dcassandra.settings.{name}={value}" for name, value in SETTINGS.items()]
    os.environ["JAVA_TOOL_OPTIONS"] = " ".join(["-Dcassandra.config.allow_system_properties=true", *settings])
    with TemporaryDirectory() as name:
        folder = Path(name)
        with cluster(folder, NODE) as nodes:
            workload = folder / "workload.rn"
            workload.write_text(WORKLOAD)
            warm_up = ("run", str(workload), NODE.address, "-p", "256", "--duration", f"{NODES_WARM_UP_S}s", "--quiet")
            for words in (("schema", workload, NODE.address), warm_up):
                subprocess.run([latte(), *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            pin(nodes)
            wait_until_idle(nodes)
            searches = [searched(folder / f"search{number}", workload) for number in (1, 2)]
        intervals = [(search["capacity_low"], search["capacity_high"]) for search in searches]
        for search, interval in zip(searches, intervals, strict=True):
            print(f"capacity {search['capacity']}, interval {interval}", flush=True)
            if None in interval:
                problems.append("a search has no interval")
            elif interval[1] < MIN_SHARE * LIMIT_PER_S or interval[0] > LIMIT_PER_S:
                problems.append(f"the capacity is not just below {LIMIT_PER_S:g} operations per second")
        if not problems and max(low for low, _ in intervals) > min(high for _, high in intervals):
            problems.append("the intervals do not overlap")
        if output := os.environ.get("OUTPUT"):
            for number in (1, 2):
                shutil.copytree(folder / f"search{number}", Path(output) / f"search{number}")
    for problem in problems:
        print(f"DEFECT: {problem}")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
