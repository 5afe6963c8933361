"""Saturate one resource of a real cluster at a time, and check which one the report names.

A cluster of three nodes runs on processor 0, with an agent per node; the load generator, latte, runs on processor 1
under `casstat record`, or with one thread on both processors. For garbage collection, the nodes have a smaller heap.
The right resource must be named in four of five runs of each scenario, and a wrong one in none. Takes about 45 minutes.
Arguments select scenarios, and ROUNDS in the environment sets the number of runs.
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from acceptance.client_hosts import PLAN, WORKLOAD, cluster, latte, loaded_workload
from cli.recordings.views import completed
from cli.runs.run_saturation import saturation_of
from cli.runs.run_views import run_views
from cli.setup.demo.demo_node import Node
from collector.runs.run_file import read_run
from exporters.report.verdict import saturation_text
from exporters.results.saturation.saturation import CPU, DISK, GC, GENERATOR, HOT_NODE, UNAVAILABLE, Resource
from tests.real.programs import program
from tests.waiting import eventually

TASKSET = shutil.which("taskset") or "taskset"
NODES_CPU, GENERATOR_CPU, ALL_CPUS = "0", "1", "0-1"
DURATION_S, WARM_UP = 30, "10s"
# The nodes are under load until they use at most this share of a processor at the low rate, MAX_WARM_UPS times at most.
# Until they have compiled their code, that rate can saturate the processor of a slow machine.
NODES_WARM_UP_S, LOW_RATE_S, LOW_RATE_SHARE, MAX_WARM_UPS = 60, 10, 0.5, 5
# The nodes are idle if, over an interval, they use less than this share of a processor together.
IDLE_SHARE, IDLE_INTERVAL_S, IDLE_WAIT_S = 0.25, 10.0, 300.0
ROUNDS, MIN_RIGHT = int(os.environ.get("ROUNDS", "5")), 0.8
# Keyspaces with one replica, so that a partition has a single owner; `busy` needs much CPU time in the generator.
FUNCTIONS = """
pub async fn prepare(ctx) {
    ctx.load_cycle_count = ROWS;
    ctx.prepare("insert", "INSERT INTO latte.numbers(id) VALUES (:id)").await?;
    ctx.prepare("read", "SELECT * FROM latte.numbers WHERE id = :id").await?;
    ctx.prepare("hot", "SELECT * FROM latte_one.numbers WHERE id = :id").await?;
    ctx.prepare("put", "INSERT INTO latte_one.blobs(id, data) VALUES (:id, :data)").await?;
    ctx.prepare("get", "SELECT * FROM latte_one.blobs WHERE id IN (0, 1, 2, 3, 4, 5, 6, 7)").await?;
}

pub async fn hot(ctx, i) { ctx.execute_prepared("hot", [1]).await? }

pub async fn busy(ctx, i) {
    let sum = 0;
    for n in 0..100000 { sum += n % 7; }
    ctx.execute_prepared("read", [(latte::hash(i) + sum) % ROWS]).await?
}

pub async fn blobs(ctx, i) {
    ctx.execute_prepared("put", [i % 8, latte::blob(i, 500000)]).await?;
    ctx.execute_prepared("get", []).await?
}
"""
SCHEMA = """
    ctx.execute("CREATE KEYSPACE IF NOT EXISTS latte_one
        WITH REPLICATION = { 'class' : 'SimpleStrategy', 'replication_factor' : 1 }").await?;
    ctx.execute("CREATE TABLE IF NOT EXISTS latte_one.numbers(id bigint PRIMARY KEY)").await?;
    ctx.execute("CREATE TABLE IF NOT EXISTS latte_one.blobs(id bigint PRIMARY KEY, data blob)").await?;
"""


@contextmanager
def disk_writers(folder: Path) -> Iterator[None]:
    """Keep the disk of `folder` busy with direct writes."""
    word = ["dd", "if=/dev/zero", "bs=4M", "count=256", "oflag=direct", "conv=notrunc", "status=none"]
    ended = threading.Event()

    def write(number: int) -> None:
        while not ended.is_set():
            subprocess.run([TASKSET, "-c", GENERATOR_CPU, *word, f"of={folder / f'dd-{number}'}"], check=True)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


@contextmanager
def suspended(node: Node) -> Iterator[None]:
    """Suspend a node."""
    node.suspend()
    try:
        yield
    finally:
        node.resume()


@dataclass(frozen=True)
class Scenario:
    """A scenario: the expected resource, latte's options, what happens during the run, and the nodes' heap.

    generator_cpus  the processors that latte may use.
    """

    expected: Resource | None
    options: Sequence[str]
    during: Callable[[Path, Sequence[Node]], AbstractContextManager[None]] = lambda folder, nodes: nullcontext()
    heap: str = PLAN.heap
    generator_cpus: str = GENERATOR_CPU


RATE = ("--rate", "40")
SCENARIOS = {
    "nothing": Scenario(None, RATE),
    "cpu": Scenario(CPU, ("-p", "64")),
    "generator": Scenario(GENERATOR, ("-f", "busy", "-p", "8")),
    "generator-thread": Scenario(GENERATOR, ("-f", "busy", "-p", "8"), generator_cpus=ALL_CPUS),
    "hot-partition": Scenario(HOT_NODE, ("-f", "hot", "-p", "64")),
    "disk": Scenario(DISK, RATE, lambda folder, nodes: disk_writers(folder)),
    "replica": Scenario(UNAVAILABLE, RATE, lambda folder, nodes: suspended(nodes[2])),
    "gc": Scenario(GC, ("-f", "blobs", "-p", "16"), heap="200M"),
}


def pin(nodes: Sequence[Node]) -> None:
    """Restrict all threads of the nodes to NODES_CPU."""
    for node in nodes:
        process = node.process()
        assert process is not None
        subprocess.run([TASKSET, "-a", "-c", "-p", NODES_CPU, str(process.pid)], check=True, stdout=subprocess.DEVNULL)


def cpu_time_s(nodes: Sequence[Node]) -> float:
    """Return the CPU time that the nodes have used."""
    return sum(sum(process.cpu_times()[:2]) for node in nodes if (process := node.process()) is not None)


def wait_until_idle(nodes: Sequence[Node]) -> None:
    """Wait until the nodes use little CPU time: after a load, they go on compiling code and compacting tables."""

    def are_idle() -> bool:
        begin_s, used_s = time.monotonic(), cpu_time_s(nodes)
        time.sleep(IDLE_INTERVAL_S)
        return cpu_time_s(nodes) - used_s < IDLE_SHARE * (time.monotonic() - begin_s)

    eventually(are_idle, IDLE_WAIT_S)


def named(folder: Path, scenario: Scenario, nodes: Sequence[Node], workload: Path) -> str:
    """Record a run, print what the report says, and return the name of the resource; "nothing" if there is none."""
    command = [TASKSET, "-c", scenario.generator_cpus, latte(), "run", str(workload), PLAN.address, "-t", "1"]
    command += [
        "--quiet",
        "--duration",
        f"{DURATION_S}s",
        "--output",
        str(folder.with_suffix(".json")),
        *scenario.options,
    ]
    words = program("record", *PLAN.addresses(), "-o", str(folder), "--warm-up", WARM_UP, "--no-report", "--", *command)
    with scenario.during(folder.parent, nodes):
        subprocess.run(words, check=False, cwd=folder.parent, stdout=subprocess.DEVNULL)
    result = completed(saturation_of(run_views(folder, read_run(folder))))
    assert result is not None
    print(f"  {saturation_text(result, 0)}")
    for finding in result.findings:
        print(f"    {finding.resource.name}: {finding.host}: {finding.text}", flush=True)
    return "undetermined" if result.is_undetermined else result.first.resource.name if result.first else "nothing"


def load(folder: Path) -> Path:
    """Create the schema and load the data; return the path of the workload."""
    begin, _, rest = WORKLOAD.partition("pub async fn prepare")
    schema = begin.rstrip().removesuffix("}") + SCHEMA + "}\n"
    return loaded_workload(folder, schema + FUNCTIONS + rest.partition("}\n")[2])


def warm_up(nodes: Sequence[Node], workload: Path) -> None:
    """Load the nodes until they have compiled the read path, so that they use little CPU time at the low rate."""

    def run(duration_s: int, *options: str) -> None:
        words = [latte(), "run", str(workload), PLAN.address, *options, "--duration", f"{duration_s}s", "--quiet"]
        subprocess.run(words, cwd=workload.parent, check=True, stdout=subprocess.DEVNULL)

    for _ in range(MAX_WARM_UPS):
        run(NODES_WARM_UP_S, "-p", "16")
        wait_until_idle(nodes)
        begin_s, used_s = time.monotonic(), cpu_time_s(nodes)
        run(LOW_RATE_S, *RATE)
        share = (cpu_time_s(nodes) - used_s) / (time.monotonic() - begin_s)
        print(f"the nodes use {share:.0%} of a processor at the low rate", flush=True)
        if share <= LOW_RATE_SHARE:
            break


def failures(folder: Path, names: Sequence[str], heap: str) -> list[str]:
    """Run these scenarios with nodes that have this heap; return the names of those with wrong results."""
    failed = []
    with cluster(folder, replace(PLAN, heap=heap)) as nodes:
        workload = load(folder)
        warm_up(nodes, workload)
        pin(nodes)
        for name in names:
            wait_until_idle(nodes)
            print(name, flush=True)
            scenario = SCENARIOS[name]
            expected = scenario.expected.name if scenario.expected else "nothing"
            results = [named(folder / f"{name}-{number}", scenario, nodes, workload) for number in range(ROUNDS)]
            right = results.count(expected)
            wrong = [result for result in results if result not in (expected, "undetermined")]
            print(f"  {expected}: {right} of {ROUNDS}; wrong: {', '.join(wrong) or 'none'}", flush=True)
            if right < MIN_RIGHT * ROUNDS or wrong:
                failed.append(name)
    return failed


def main() -> int:
    """Run the scenarios; return the exit status."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    failed = []
    chosen = sys.argv[1:] or [*SCENARIOS]
    for heap in dict.fromkeys(SCENARIOS[name].heap for name in chosen):
        with TemporaryDirectory() as folder:
            failed += failures(Path(folder), [name for name in chosen if SCENARIOS[name].heap == heap], heap)
    print(f"failed: {', '.join(failed) or 'none'}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
