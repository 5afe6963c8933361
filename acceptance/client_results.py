"""Record latte on a real cluster, and compare the imported result with its report.

A cluster of three nodes runs with an agent per node. latte (rate-limited reads) runs under `casstat record`. The
imported count must equal that of the report, percentiles must lie within its resolution, the client's throughput must
be within 1% of the server's, and the server's p99 must not exceed the client's by more than one of Cassandra's buckets.
Takes about four minutes, and longer if latte is not installed.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from acceptance.client_hosts import PLAN, WORKLOAD, cluster, latte
from cli.runs.client_results import results_in
from collector.clients.client_result import Operation
from collector.model.histogram import GROWTH
from tests.real.programs import program

DURATION_S, RATE = 60, 1000
WARM_UP = "10s"
# Between the client's throughput and the server's.
TOLERANCE = 0.01


def recorded(folder: Path, command: Sequence[str], *options: str) -> None:
    """Record a command on all nodes. Raises CalledProcessError."""
    words = program("record", *PLAN.addresses(), "-o", str(folder), "--warm-up", WARM_UP, *options, "--", *command)
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def summary(folder: Path) -> dict[str, Any]:
    """Return the columns of the last phase of a run's summary."""
    values: dict[str, Any] = json.loads((folder / "summary.json").read_text())[-1]["values"]
    return values


def defects(folder: Path, server_column: str, p99_column: str) -> Iterator[str]:
    """Compare the client's throughput and latency with the server's, print both, and yield what is wrong."""
    values = summary(folder)
    client, server = values["client_ops_per_s"], values[server_column]
    print(f"  throughput: client {client}/s, server {server}/s ({100 * (client / server - 1):+.2f}%)")
    if abs(client / server - 1) > TOLERANCE:
        yield "client and server throughput differ by more than 1%"
    client_ms, server_ms = values["client_p99_ms"], values[p99_column]
    print(f"  p99: client {client_ms} ms ({values['client_latency']} time), server {server_ms} ms")
    if server_ms > client_ms * GROWTH:
        yield "the server's p99 exceeds the client's by more than one bucket"


def only_operation(folder: Path) -> Operation:
    """Return the operation of the run's only result."""
    (result,) = results_in(folder)
    (operation,) = result.operations
    return operation


def percentiles_ms(operation: Operation, percentages: Sequence[float]) -> list[float | None]:
    """Return the percentiles of all of an operation's intervals."""
    assert operation.summary is not None
    latency = operation.summary.response or operation.summary.service
    assert latency is not None
    return [None if value_s is None else value_s * 1000 for value_s in latency.percentiles_s(percentages)]


def latte_run(folder: Path, generator: str, workload: Path) -> Iterator[str]:
    """Record latte, and yield what is wrong."""
    report = folder.with_suffix(".json")
    command = [generator, "run", str(workload), PLAN.address, "--rate", str(RATE), "--duration", f"{DURATION_S}s"]
    recorded(folder, [*command, "--quiet", "--output", str(report)], "--client", str(report))
    content = json.loads(report.read_text())
    operation, stated = only_operation(folder), content["result"]
    assert operation.summary is not None
    print(f"  {operation.summary.completed} operations imported, {stated['cycle_count']} in the report")
    if operation.summary.completed + operation.summary.failed != stated["cycle_count"]:
        yield "the imported count differs"
    pairs = list(zip(content["percentiles"], stated["cycle_latency"]["percentiles"], strict=True))[1:]
    for (percentage, reported), imported_ms in zip(
        pairs, percentiles_ms(operation, [percentage for percentage, _ in pairs]), strict=True
    ):
        if imported_ms is None or abs(imported_ms / reported["value"] - 1) > 0.001:
            yield f"p{percentage:g} is {imported_ms} ms instead of {reported['value']} ms"
    yield from defects(folder, "reads_per_s", "read_p99_ms")


def main() -> int:
    """Record the runs; return the exit status."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    generator, status = latte(), 0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        stack.enter_context(cluster(folder))
        workload = folder / "workload.rn"
        workload.write_text(WORKLOAD)
        for step in ("schema", "load"):
            subprocess.run([generator, step, workload, PLAN.address], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        print("latte", flush=True)
        problems = list(latte_run(folder / "latte", generator, workload))
        print(*(f"  DEFECT: {problem}" for problem in problems), sep="\n")
        status |= bool(problems)
    return status


if __name__ == "__main__":
    sys.exit(main())
