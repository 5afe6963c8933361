"""Record runs of a third-party load generator, latte, on two client hosts that are reached through a real sshd.

A cluster of three nodes runs with an agent per node; both client hosts are this machine. In the first run, nothing
fails; in the second, a node is killed and comes back; the third is ended with Ctrl-C. In each run, the merged reads
must equal the increases of the recorded counters between the first and the last sample of each uninterrupted stretch of
each node. In the first run, they must also be close to the number of reads that latte reports, and the results imported
from latte's files must have exactly that number. Without latte, `cargo install` builds it, which takes about a quarter
of an hour; the rest takes about six minutes.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from cli.recordings.recording_arguments import results_in
from cli.setup.demo.demo_cluster import LocalCluster, Plan, cache_folder
from cli.setup.demo.demo_node import Node
from collector.runs.run import Run
from collector.runs.run_file import read_run
from tests.faults.agents import RunningAgent
from tests.faults.ssh_server import SshServer, ssh_server
from tests.real.nodes import no_progress
from tests.real.programs import program
from tests.real.recorded_reads import increases, rows_of

PLAN = Plan("5.0.8", 3, "127.0.189.1", "400M")
LATTE = "0.29.0"
CLIENT_HOSTS, DURATION_S, OUTAGE_S = 2, 40, 10.0
# Reads per second of each client host.
RATE = 1000
# Ticks do not coincide with the beginning and the end of the command, and latte reads a few rows before it measures.
TOLERANCE = 0.01
WORKLOAD = """
const ROWS = 10000;
const KEYSPACE = "CREATE KEYSPACE IF NOT EXISTS latte
    WITH REPLICATION = { 'class' : 'SimpleStrategy', 'replication_factor' : 3 }";

pub async fn schema(ctx) {
    ctx.execute(KEYSPACE).await?;
    ctx.execute("CREATE TABLE IF NOT EXISTS latte.numbers(id bigint PRIMARY KEY)").await?;
}

pub async fn prepare(ctx) {
    ctx.load_cycle_count = ROWS;
    ctx.prepare("insert", "INSERT INTO latte.numbers(id) VALUES (:id)").await?;
    ctx.prepare("read", "SELECT * FROM latte.numbers WHERE id = :id").await?;
}

pub async fn load(ctx, i) { ctx.execute_prepared("insert", [i]).await? }

pub async fn run(ctx, i) { ctx.execute_prepared("read", [latte::hash(i) % ROWS]).await? }
"""


def latte() -> str:
    """Return the path of latte, after installing it if necessary."""
    folder = cache_folder(os.environ) / "latte"
    program_path = shutil.which("latte") or shutil.which("latte", path=folder / "bin")
    if program_path is None:
        cargo = shutil.which("cargo") or "cargo"
        subprocess.run([cargo, "install", "latte-cli", "--version", LATTE, "--root", folder], check=True)
        program_path = str(folder / "bin" / "latte")
    return program_path


def loaded_workload(folder: Path, text: str = WORKLOAD) -> Path:
    """Create the table and the rows of a workload of latte; return its path."""
    workload = folder / "workload.rn"
    workload.write_text(text)
    for step in ("schema", "load"):
        # latte writes its log to the working directory.
        subprocess.run([latte(), step, workload, PLAN.address], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return workload


@contextmanager
def running_cluster() -> Iterator[tuple[Path, list[Node]]]:
    """Run the nodes with their agents; provide an empty directory and the nodes."""
    # A shell may start a background job with SIGINT ignored, and the recorder would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with TemporaryDirectory() as name, cluster(Path(name)) as nodes:
        yield Path(name), nodes


def status_of(runs: Mapping[str, Callable[[], Iterator[str]]], ended: Callable[[str], object] = str) -> int:
    """Perform the runs that the arguments name, or all; print what each yields as wrong; return the exit status.

    `ended` is called after each run with its name.
    """
    status = 0
    for name in sys.argv[1:] or runs:
        print(name, flush=True)
        for problem in runs[name]():
            print(f"  DEFECT: {problem}", flush=True)
            status = 1
        ended(name)
    return status


@contextmanager
def cluster(folder: Path, plan: Plan = PLAN) -> Iterator[list[Node]]:
    """Run the nodes, each with an agent on port 17199 of its address."""
    nodes = LocalCluster(folder / "cluster", cache_folder(os.environ)).up(plan, os.environ, no_progress)
    try:
        with ExitStack() as stack:
            for node in nodes:
                options = (
                    "--jolokia",
                    node.spec.jolokia_url,
                    "-m",
                    str(node.spec.jmx_port),
                    "--log",
                    str(node.spec.log),
                )
                listen = f"{node.spec.address}:17199"
                stack.enter_context(
                    RunningAgent(folder / node.spec.address, *options, listen=listen)
                ).wait_until_serving()
            yield nodes
    finally:
        for node in nodes:
            node.kill()


@contextmanager
def recorded(server: SshServer, folder: Path, command: Sequence[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """Record a run of latte on the client hosts; yield the recorder's process, and wait for it after the block."""
    hosts = [word for _ in range(CLIENT_HOSTS) for word in ("--client-host", server.url)]
    words = program("record", *PLAN.addresses(), *hosts, "-o", str(folder), "--warm-up", "5s", "--", *command)
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as process:
        yield process
        process.wait(600)


def defects(run_folder: Path, journals: Path) -> list[str]:
    """Print what each node and client host recorded, and return what is wrong with the run."""
    run = read_run(run_folder)
    rows = rows_of(run_folder / "merged")
    problems = [f"{node.name}: {node.problem}" for node in run.recorded if node.problem]
    for node in run.nodes:
        counted = sum(float(row["reads"]) for row in rows if row["node"] == node.name and row["reads"])
        expected = increases(journals / node.name, node.begin_s or 0.0, node.end_s or 0.0)
        print(f"  {node.name}: {counted:.0f} reads merged, {expected:.0f} counted")
        if counted != expected:
            problems.append(f"{node.name}: {counted:.0f} reads instead of {expected:.0f}")
    for host in run.client_hosts:
        print(f"  client host {host.name}: {host.ticks} ticks, exit code {host.exit_code}")
        if not host.ticks:
            problems.append(f"client host {host.name} has no ticks")
    return problems


def duration_of(run: Run) -> float:
    """Return how long a run lasted, in seconds."""
    assert run.end_s is not None
    return run.end_s - run.begin_s


def latte_reads(run_folder: Path, run: Run) -> int:
    """Return the number of reads in latte's reports."""
    reports = [path for host in run.client_hosts for path in (run_folder / host.results / "files").glob("*.json")]
    return sum(json.loads(path.read_text())["result"]["request_count"] for path in reports)


def imported_reads(run_folder: Path) -> int:
    """Return the number of reads in the results that were imported from the client hosts' files."""
    operations = [operation for result in results_in(run_folder) for operation in result.operations]
    return sum(operation.summary.completed for operation in operations if operation.summary)


def main() -> int:
    """Record the runs; return the exit status."""
    generator, status = latte(), 0
    with ExitStack() as stack:
        folder, nodes = stack.enter_context(running_cluster())
        server = stack.enter_context(ssh_server(folder / "ssh", {}))
        os.environ["PATH"] = server.path
        workload = loaded_workload(folder)
        run_latte = [generator, "run", str(workload), PLAN.address, "--rate", str(RATE), "--duration", f"{DURATION_S}s"]
        command = [*run_latte, "--quiet", "--tag", "{host}", "--output", "result-{index}.json"]
        for name in ("undisturbed", "outage", "ctrl-c"):
            print(name)
            run_folder = folder / name
            with recorded(server, run_folder, command) as process:
                time.sleep(DURATION_S / 2)
                if name == "outage":
                    nodes[2].kill()
                    time.sleep(OUTAGE_S)
                    nodes[2].start()
                elif name == "ctrl-c":
                    process.send_signal(signal.SIGINT)
            problems = defects(run_folder, folder)
            if name == "undisturbed":
                rows = rows_of(run_folder / "merged")
                merged = sum(float(row["reads"]) for row in rows if row["node"] == "cluster" and row["reads"])
                reported = latte_reads(run_folder, read_run(run_folder))
                print(f"  {merged:.0f} reads merged, {reported} reported by latte")
                if abs(merged - reported) > TOLERANCE * reported:
                    problems.append("latte reports another number of reads")
                imported = imported_reads(run_folder)
                print(f"  {imported} reads imported from the client hosts' files")
                if imported != reported:
                    problems.append("the imported results have another number of reads")
            elif name == "outage":
                nodes[2].wait(no_progress)
            elif (duration_s := duration_of(read_run(run_folder))) > 0.75 * DURATION_S:
                problems.append(f"the run lasted {duration_s:.0f} s in spite of Ctrl-C")
            print(f"  exit status {process.returncode}", *(f"  DEFECT: {defect}" for defect in problems), sep="\n")
            status |= bool(problems)
    return status


if __name__ == "__main__":
    sys.exit(main())
