"""Record load generators on a real cluster, and compare the imported results with what each generator reports.

A cluster of three nodes runs with an agent per node. Under `casstat record` run: latte (reads at a fixed rate), JMeter
(reads and writes through Cassandra's Java driver) and, through an HTTP server that sends a CQL read per request, wrk
and Vegeta. One of 20 requests of Vegeta is for a missing page, and its results are imported as the generic CSV.
Imported counts and percentiles must be those that the generator states, the client's throughput must be within 1% of
the server's, and in no phase may the server's p99 exceed the client's by more than one of Cassandra's buckets.
Arguments select generators. With CAPTURES in the environment, their outputs are copied to that directory. Takes about
twelve minutes, and longer if latte or Vegeta is not installed.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import ceil, pi, sqrt
from pathlib import Path
from typing import Any

from cassandra.cluster import Cluster

from acceptance import http_front_end, vegeta
from acceptance.client_hosts import PLAN, latte, loaded_workload, running_cluster, status_of
from cli.recordings.recording_arguments import results_in
from collector.load_results.client_result import ClientInterval
from collector.load_results.formats.wrk import UNITS_S
from collector.model.histogram import GROWTH
from tests.ports import free_port
from tests.real import jmeter_plan
from tests.real.programs import program
from tests.waiting import eventually

DURATION_S, RATE = 60, 1000
WRK_DURATION_S = 120
WARM_UP = "10s"
# Between the client's throughput and the server's.
TOLERANCE = 0.01
MS_PER_S = 1000.0
PERCENTAGES = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9)
WRK_CONNECTIONS = 4
VEGETA_RATE = 80
# One of that many requests of Vegeta is for a missing page.
VEGETA_TARGETS = 20
# Vegeta estimates percentiles with a t-digest of this compression and the scale function k1 (Dunning and Ertl,
# "Computing extremely accurate quantiles using t-digests"). The centroid at the share q has
# pi sqrt(q (1 - q)) / compression of the values, and an estimate is exact to that share.
VEGETA_COMPRESSION = 100
# About three minutes: the JVM starts and ends within the recorded phase, which must take less than 1% of it.
JMETER_LOOPS = 10_000
_WRK_PERCENTILE = re.compile(r" +(\d+)% +([\d.]+)(us|ms|s)")
_WRK_REQUESTS = re.compile(r"(\d+) requests in")


def recorded(folder: Path, command: Sequence[str], *options: str) -> None:
    """Record a command on all nodes. Raises CalledProcessError."""
    words = program("record", *PLAN.addresses(), "-o", str(folder), *options, "--", *command)
    subprocess.run(words, cwd=folder.parent, check=True, stdout=subprocess.DEVNULL)


def totals(folder: Path) -> dict[str, ClientInterval]:
    """Return the total of each operation of the run's only result."""
    (result,) = results_in(folder)
    return {operation.name: total for operation in result.operations if (total := operation.summary) is not None}


def wrong_count(name: str, total: ClientInterval, stated: int) -> Iterator[str]:
    """Compare the imported number of completed and failed operations with the stated one."""
    imported = total.completed + total.failed
    print(f"  {name or 'operations'}: {imported} imported ({total.failed} failed), {stated} stated")
    if imported != stated:
        yield f"{name}: {imported} operations instead of {stated}"


def wrong_percentiles(name: str, total: ClientInterval, stated_ms: Mapping[float, float]) -> Iterator[str]:
    """Compare imported percentiles with the stated ones, which have three significant digits."""
    latency = total.response or total.service
    assert latency is not None
    for (percentage, value_ms), value_s in zip(stated_ms.items(), latency.percentiles_s(list(stated_ms)), strict=True):
        imported_ms = value_s and value_s * MS_PER_S
        print(f"  {name} p{percentage:g}: {imported_ms} ms imported, {value_ms} ms stated")
        if imported_ms is None or abs(imported_ms / value_ms - 1) > 0.001:
            yield f"{name}: p{percentage:g} is {imported_ms} ms instead of {value_ms} ms"


def disagreements(folder: Path, operations: Mapping[str, str]) -> Iterator[str]:
    """Compare the client's throughput and p99 with the server's in each phase.

    `operations` has the server's name of an operation for each client's prefix of columns.
    """
    phases: list[dict[str, Any]] = json.loads((folder / "summary.json").read_text())
    for number, phase in enumerate(phases, 1):
        values = phase["values"]
        for client, server in operations.items():
            client_rate, server_rate = values[f"{client}_ops_per_s"], values[f"{server}s_per_s"]
            client_ms, server_ms = values[f"{client}_p99_ms"], values[f"{server}_p99_ms"]
            print(
                f"  phase {phase['name']}, {server}: client {client_rate}/s, server {server_rate}/s"
                f"; p99 client {client_ms} ms ({values['client_latency']} time), server {server_ms} ms"
            )
            # The others are warm-up phases, during which the generator connects.
            if number == len(phases) and abs(client_rate / server_rate - 1) > TOLERANCE:
                yield f"throughput differs by {100 * (client_rate / server_rate - 1):+.2f}%"
            if client_ms is not None and server_ms > client_ms * GROWTH:
                yield f"phase {phase['name']}: the server's p99 exceeds the client's by more than one bucket"


def latte_run(folder: Path) -> Iterator[str]:
    """Record latte, and yield what is wrong."""
    report, workload = folder / "latte.json", folder / "workload.rn"
    command = [latte(), "run", str(workload), PLAN.address, "--rate", str(RATE), "--duration", f"{DURATION_S}s"]
    client = ("--client", str(report))
    recorded(folder / "latte", [*command, "--quiet", "--output", str(report)], "--warm-up", WARM_UP, *client)
    content = json.loads(report.read_text())
    stated = content["result"]
    ((name, total),) = totals(folder / "latte").items()
    yield from wrong_count(name, total, stated["cycle_count"])
    pairs = zip(content["percentiles"], stated["cycle_latency"]["percentiles"], strict=True)
    yield from wrong_percentiles(name, total, {percentage: value["value"] for percentage, value in list(pairs)[1:]})
    yield from disagreements(folder / "latte", {"client": "read"})


def jmeter_run(folder: Path) -> Iterator[str]:
    """Record JMeter, and yield what is wrong."""
    with Cluster([PLAN.address]) as session_cluster, session_cluster.connect() as session:
        for statement in jmeter_plan.schema(replicas=PLAN.nodes):
            session.execute(statement, timeout=60)
    result = folder / "jmeter.jtl"
    command = jmeter_plan.jmeter_command(folder / "jmeter-home", PLAN.address, result, JMETER_LOOPS)
    recorded(folder / "jmeter", command, "--warm-up", WARM_UP, "--client", str(result))
    samples, by_name = jmeter_plan.samples_of(result), totals(folder / "jmeter")
    printed = (folder / "jmeter" / "command.log").read_text()
    failed = sum(total.failed for total in by_name.values())
    imported = (sum(total.completed for total in by_name.values()) + failed, failed)
    print(f"  {imported} samples and failed samples imported; JMeter prints {jmeter_plan.printed_totals(printed)}")
    if imported != jmeter_plan.printed_totals(printed):
        yield "the imported counts differ from those that JMeter prints"
    for name in ("read", "write"):
        yield from wrong_count(name, by_name[name], sum(sample["label"] == name for sample in samples))
        stated_ms = dict(zip(PERCENTAGES, jmeter_plan.percentiles_ms(samples, name, PERCENTAGES), strict=True))
        yield from wrong_percentiles(name, by_name[name], stated_ms)
    yield from disagreements(folder / "jmeter", {"client_read": "read", "client_write": "write"})


@contextmanager
def front_end() -> Iterator[str]:
    """Run the HTTP server; yield its URL."""
    port = free_port(http_front_end.HOST)
    server = http_front_end.start(port, PLAN.addresses())
    try:
        eventually(lambda: http_front_end.is_serving(port))
        yield f"http://{http_front_end.HOST}:{port}/"
    finally:
        server.terminate()
        server.wait(60)


def wrk_run(folder: Path) -> Iterator[str]:
    """Record wrk, and yield what is wrong."""
    wrk = shutil.which("wrk") or "wrk"
    with front_end() as url:
        command = [wrk, "-t", "1", "-c", str(WRK_CONNECTIONS), "--latency", url, "-d"]
        # wrk states only a total, so there is no warm-up to exclude, and the first requests of a server are slow.
        subprocess.run([*command, WARM_UP], check=True, stdout=subprocess.DEVNULL)
        recorded(folder / "wrk", [*command, f"{WRK_DURATION_S}s"])
    printed = (folder / "wrk" / "command.log").read_text()
    ((name, total),) = totals(folder / "wrk").items()
    (stated,) = _WRK_REQUESTS.findall(printed)
    yield from wrong_count(name, total, int(stated))
    values = {
        float(percentage): round(float(value) * UNITS_S[unit] * MS_PER_S, 6)
        for percentage, value, unit in _WRK_PERCENTILE.findall(printed)
    }
    yield from wrong_percentiles(name, total, values)
    yield from disagreements(folder / "wrk", {"client": "read"})


def vegeta_run(folder: Path) -> Iterator[str]:
    """Record Vegeta, import its results into the run, and yield what is wrong."""
    run, results, imported = folder / "vegeta", folder / "vegeta.bin", folder / "vegeta.csv"
    targets = folder / "vegeta-targets.txt"
    with front_end() as url:
        pages = [""] * (VEGETA_TARGETS - 1) + [http_front_end.MISSING_PAGE]
        targets.write_text("".join(f"GET {url}{page}\n" for page in pages))
        command = vegeta.attack_command(targets, results, VEGETA_RATE, DURATION_S)
        # On a cold server, requests wait for each other, so more of them end in the phase than begin in it.
        subprocess.run(command, check=True)
        recorded(run, command, "--warm-up", WARM_UP)
    rows = vegeta.rows_of(results)
    vegeta.write_generic_csv(rows, imported)
    subprocess.run(program("import", str(run), str(imported)), check=True, stdout=subprocess.DEVNULL)
    ((name, total),) = totals(run).items()
    report = vegeta.report_of(rows)
    yield from wrong_count(name, total, report["requests"])
    statuses = {vegeta.OK: total.completed, **{status: count for status, count in total.errors.items() if count}}
    print(f"  status codes: {statuses} imported, {report['status_codes']} stated")
    if statuses != report["status_codes"]:
        yield "the status codes differ"
    succeeded = [row for row in rows if row[1] == vegeta.OK]
    latencies_ms = sorted(map(vegeta.latency_ms, succeeded))
    exact = {percentage: latencies_ms[ceil(percentage * len(latencies_ms) / 100) - 1] for percentage in PERCENTAGES}
    yield from wrong_percentiles(name, total, exact)
    for percentage, value_ns in vegeta.percentiles_ns(vegeta.report_of(succeeded)).items():
        share = bisect(latencies_ms, value_ns / vegeta.NS_PER_MS) / len(latencies_ms)
        print(f"  p{percentage:g} in Vegeta's report: {value_ns / vegeta.NS_PER_MS} ms, exceeded by {1 - share:.2%}")
        expected = percentage / 100
        if abs(share - expected) > pi * sqrt(expected * (1 - expected)) / VEGETA_COMPRESSION:
            yield f"Vegeta's p{percentage:g} is exceeded by {1 - share:.2%} of the requests"
    yield from disagreements(run, {"client": "read"})


RUNS = {"latte": latte_run, "jmeter": jmeter_run, "wrk": wrk_run, "vegeta": vegeta_run}
OUTPUTS = {"latte": "latte.json", "jmeter": "jmeter.jtl", "wrk": "wrk/command.log", "vegeta": "vegeta.csv"}


def copy_output(folder: Path, name: str) -> None:
    """Copy a run and its load generator's output to the directory CAPTURES, if it is set."""
    if captures := os.environ.get("CAPTURES"):
        shutil.copyfile(folder / OUTPUTS[name], Path(captures) / f"{name}{Path(OUTPUTS[name]).suffix}")
        shutil.copytree(folder / name, Path(captures) / name)


def main() -> int:
    """Record the runs; return the exit status."""
    with running_cluster() as (folder, _):
        loaded_workload(folder)
        return status_of({name: partial(run, folder) for name, run in RUNS.items()}, partial(copy_output, folder))


if __name__ == "__main__":
    sys.exit(main())
