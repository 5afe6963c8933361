"""Record YCSB and latte on a real cluster, import what they print, and compare it with the nodes' own counts.

A cluster of three nodes runs with an agent per node. YCSB's core, with a binding that sends a CQL statement for each
operation, runs with status lines of both kinds of latency, with a time series and read-modify-writes, and with a
summary only; one of 20 reads does not find its row. latte prints its samples. The imported operations must be exactly
those that are printed, and within 1% of the reads and writes that the nodes counted. Arguments select runs. With
CAPTURES in the environment, the outputs are copied to that directory. Takes about six minutes, and longer if latte is
not installed.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from cassandra.cluster import Cluster

from acceptance.client_hosts import PLAN, latte, loaded_workload, running_cluster, status_of
from acceptance.load_generators import recorded
from cli.recordings.recording_arguments import results_in
from cli.setup.demo.demo_cluster import cache_folder
from cli.setup.demo.java_runtime import fetch_jars, find_java
from tests.real.nodes import no_progress
from tests.real.recorded_reads import rows_of

VERSION = "0.17.0"
# The driver comes first, because both need HdrHistogram, and the driver needs a later version of it.
DEPENDENCIES = ("org.apache.cassandra:java-driver-core:4.18.1", f"site.ycsb:core:{VERSION}")
BINDING = Path(__file__).parent / "CassandraBinding.java"
RECORDS, LOADED, RATE, DURATION_S = 1000, 950, 500, 40
# Between the imported operations and those that the nodes counted.
TOLERANCE = 0.01
SCHEMA = (
    "CREATE KEYSPACE IF NOT EXISTS ycsb WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}",
    "CREATE TABLE IF NOT EXISTS ycsb.usertable (id text PRIMARY KEY, field0 text)",
)
OPTIONS = {
    "status": ("-s", "-p", "status.interval=1", "-p", "measurement.interval=both"),
    "timeseries": ("-s", "-p", "measurementtype=timeseries", "-p", "readmodifywriteproportion=0.1"),
    "summary": (),
}
_RETURN = re.compile(r"\[(READ|UPDATE)\], Return=(\w+), (\d+)")
_CYCLES = re.compile(r"Cycles +\[op\] +(\d+)")

# The number of operations of an operation, by return code or "" for those that succeeded.
Counts = dict[str, int]


def ycsb_words(classes: Path) -> list[str]:
    """Return the beginning of YCSB's command line, after compiling the binding into the directory `classes`."""
    jars = fetch_jars(cache_folder(os.environ) / f"ycsb-{VERSION}", DEPENDENCIES, no_progress, f"YCSB {VERSION}")
    java = find_java(os.environ)
    compiler = shutil.which("javac", path=Path(java).parent) or "javac"
    subprocess.run([compiler, "--release", "11", "-cp", f"{jars}/*", "-d", classes, BINDING], check=True)
    words = [java, "-Xmx256m", "-cp", f"{jars}/*:{classes}", "site.ycsb.Client", "-db", "CassandraBinding"]
    properties = {
        "workload": "site.ycsb.workloads.CoreWorkload",
        "host": PLAN.address,
        "recordcount": RECORDS,
        "fieldcount": 1,
        "requestdistribution": "uniform",
    }
    return [*map(str, words), *(word for name, value in properties.items() for word in ("-p", f"{name}={value}"))]


def printed_by(folder: Path, command: Sequence[str]) -> str:
    """Record a command on all nodes, and return what it printed."""
    recorded(folder, command)
    return (folder / "command.log").read_text()


def imported(folder: Path) -> dict[str, Counts]:
    """Return the imported operations of a run's only result."""
    (result,) = results_in(folder)
    for note in result.notes:
        print(f"  note: {note}")
    counts = {}
    for operation in result.operations:
        # Only the total states return codes.
        total = operation.total or operation.summary
        assert total is not None
        assert operation.summary is not None
        assert (total.completed, total.failed) == (operation.summary.completed, operation.summary.failed)
        counts[operation.name] = {"": total.completed, **total.errors}
    return counts


def differences(folder: Path, counts: Mapping[str, Counts], columns: Mapping[str, str]) -> Iterator[str]:
    """Compare operations with what the nodes counted in the columns of the merged rows."""
    rows = [row for row in rows_of(folder / "merged") if row["node"] == "cluster"]
    for name, column in columns.items():
        operations = sum(counts[name].values())
        served = sum(float(row[column]) for row in rows if row[column])
        print(f"  {name}: {operations} operations imported, {served:.0f} {column} counted by the nodes")
        if abs(served - operations) > TOLERANCE * operations:
            yield f"the nodes counted {served:.0f} {column} instead of {operations}"


def ycsb_run(folder: Path, name: str) -> Iterator[str]:
    """Record YCSB with the options of a name, and yield what is wrong."""
    classes = folder / "classes"
    words = [*ycsb_words(classes), "-threads", "4", "-p", "readproportion=0.6", "-p", "updateproportion=0.4"]
    # A new table, so that updates of an earlier run do not add the missing rows.
    with Cluster([PLAN.address]) as session_cluster, session_cluster.connect() as session:
        for statement in (*SCHEMA, "TRUNCATE ycsb.usertable"):
            session.execute(statement, timeout=60)
    loading = [*words, "-load", "-p", f"insertcount={LOADED}"]
    subprocess.run(loading, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    limits = ["-target", str(RATE), "-p", f"maxexecutiontime={DURATION_S}", "-p", "operationcount=1000000000"]
    printed = printed_by(folder / name, [*words, "-t", *limits, *OPTIONS[name]])
    stated: dict[str, Counts] = {}
    for operation, code, count in _RETURN.findall(printed):
        stated.setdefault(operation.lower(), {})["" if code == "OK" else code] = int(count)
    counts = imported(folder / name)
    print(f"  imported: {counts}")
    if counts != stated:
        yield f"YCSB states {stated}"
    yield from differences(folder / name, counts, {"read": "reads", "update": "writes"})


def latte_run(folder: Path) -> Iterator[str]:
    """Record latte, and yield what is wrong."""
    workload = loaded_workload(folder)
    options = ["--rate", str(RATE), "--duration", f"{DURATION_S}s", "--output", str(folder / "latte.json")]
    printed = printed_by(folder / "latte", [latte(), "run", str(workload), PLAN.address, *options])
    (stated,) = map(int, _CYCLES.findall(printed))
    counts = imported(folder / "latte")
    print(f"  imported: {counts}")
    if sum(counts["run"].values()) != stated:
        yield f"latte states {stated} cycles"
    yield from differences(folder / "latte", counts, {"run": "reads"})


def copy_output(run: Path) -> None:
    """Copy what a load generator printed to the directory CAPTURES, if it is set."""
    if captures := os.environ.get("CAPTURES"):
        shutil.copyfile(run / "command.log", Path(captures) / f"{run.name}.log")


def main() -> int:
    """Record the runs; return the exit status."""
    with running_cluster() as (folder, _):
        runs = {name: partial(ycsb_run, folder, name) for name in OPTIONS} | {"latte": partial(latte_run, folder)}
        return status_of(runs, lambda name: copy_output(folder / name))


if __name__ == "__main__":
    sys.exit(main())
