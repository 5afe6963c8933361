"""Record HTTP load generators on a real cluster, and compare what is imported with what they print and the nodes count.

A cluster of three nodes runs with an agent per node, and an HTTP server sends a CQL read per request. Under `casstat
record` run ab, hey, oha, k6, Locust and Gatling, the latter in a version that writes its log as text and in one that
writes it in binary form. One of 20 requests of k6, Locust and Gatling is for a missing page, which fails and causes no
read. The number of imported operations must be that which the generator prints, and the completed ones those that the
nodes count, both within 1% (Locust does not write its last second). Arguments select generators. Those that are not
installed are installed into the cache; oha takes about a quarter of an hour to build. The rest takes about 15 minutes.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from cassandra import ConsistencyLevel
from cassandra.cluster import Cluster
from cassandra.concurrent import execute_concurrent_with_args

from acceptance.client_hosts import PLAN, running_cluster, status_of
from acceptance.http_front_end import MISSING_PAGE, ROWS
from acceptance.load_generators import front_end, recorded
from cli.recordings.recording_arguments import results_in
from cli.setup.demo.demo_cluster import cache_folder
from cli.setup.demo.demo_node import Node
from cli.setup.demo.java_runtime import fetch_jars, find_java
from tests.real.nodes import no_progress
from tests.real.programs import ask

RATE, DURATION_S, REQUESTS, CONNECTIONS = 100, 60, 6000, 4
# Locust's last row is up to a second before its end.
LOCUST_DURATION_S = 180
# One of that many requests is for a missing page.
PAGES = 20
TOLERANCE = 0.01
READS = "org.apache.cassandra.metrics:type=ClientRequest,scope=Read,name=Latency"
HEY, K6, OHA, LOCUST = "github.com/rakyll/hey@v0.1.5", "go.k6.io/k6@v1.8.1", "1.16.0", "locust==2.47.0"
GATLING_TEXT, GATLING_BINARY = "3.9.5", "3.14.9"
K6_SCRIPT = """
import http from 'k6/http';
export const options = { scenarios: { load: {
    executor: 'constant-arrival-rate', rate: %(rate)d, duration: '%(seconds)ds', preAllocatedVUs: 20 } } };
export default function () {
    http.get('%(url)s' + (Math.random() * %(pages)d < 1 ? '%(missing)s' : ''), { tags: { name: 'read' } });
}
"""
LOCUST_FILE = """
import random
from locust import HttpUser, constant_throughput, task

class Reader(HttpUser):
    wait_time = constant_throughput(%(rate)d / %(users)d)

    @task
    def read(self):
        self.client.get('%(missing)s' if random.random() * %(pages)d < 1 else '', name='read')
"""
SIMULATION = """
import io.gatling.javaapi.core.*;
import static io.gatling.javaapi.core.CoreDsl.*;
import static io.gatling.javaapi.http.HttpDsl.*;
import java.time.Duration;

public class Reads extends Simulation {
    ChainBuilder read = group("pages").on(exec(http("read").get("%(url)s")));
    ScenarioBuilder reads = scenario("reads").repeat(%(pages)d - 1).on(read)
        .exec(http("missing").get("%(url)s%(missing)s"));
    double usersPerSec = (double) %(rate)d / %(pages)d;
    {
        setUp(reads.injectOpen(constantUsersPerSec(usersPerSec).during(Duration.ofSeconds(%(seconds)d))));
    }
}
"""
LOGBACK = '<configuration><root level="OFF"/></configuration>\n'


@dataclass(frozen=True)
class Load:
    """A command, the files with its result ("" if casstat reads what it prints), and how it states its total."""

    command: Sequence[str]
    client: str = ""
    stated: Callable[[str], int] = field(default=lambda _printed: 0)


def installed(name: str, command: Callable[[Path], Sequence[str]], *, environment: str = "") -> str:
    """Return the path of a program, after `command` has installed it into the directory that it is given.

    `environment` is the name of the variable that states this directory, or "".
    """
    folder = cache_folder(os.environ) / "web-generators" / name
    path = shutil.which(name) or shutil.which(name, path=folder / "bin")
    if path is None:
        more = {environment: str(folder / "bin")} if environment else {}
        subprocess.run(list(command(folder)), check=True, env={**os.environ, **more})
        path = str(folder / "bin" / name)
    return path


def go_program(name: str, module: str) -> str:
    return installed(name, lambda _: [shutil.which("go") or "go", "install", module], environment="GOBIN")


def values(url: str, seconds: int = DURATION_S) -> dict[str, object]:
    """Return what the scripts are filled with."""
    return {"url": url, "missing": MISSING_PAGE, "pages": PAGES, "rate": RATE, "seconds": seconds, "users": CONNECTIONS}


def last_number(pattern: str) -> Callable[[str], int]:
    """Return a function that sums the groups of the last match of a pattern in a text."""
    return lambda text: sum(int(group.replace(",", "")) for group in list(re.finditer(pattern, text))[-1].groups())


def ab(folder: Path, url: str) -> Load:
    command = [shutil.which("ab") or "ab", "-n", str(REQUESTS), "-c", str(CONNECTIONS), url]
    return Load(command, stated=last_number(r"Complete requests: +(\d+)"))


def hey(folder: Path, url: str) -> Load:
    words = ("-z", f"{DURATION_S}s", "-c", str(CONNECTIONS), "-q", str(RATE // CONNECTIONS), url)
    return Load([go_program("hey", HEY), *words], stated=last_number(r"\[200\]\s+(\d+) responses"))


def oha(folder: Path, url: str) -> Load:
    def build(target: Path) -> list[str]:
        return [shutil.which("cargo") or "cargo", "install", "oha", "--version", OHA, "--locked", "--root", str(target)]

    words = ("--no-tui", "--output-format", "json", "-n", str(REQUESTS), "-c", str(CONNECTIONS), "-q", str(RATE), url)
    return Load(
        [installed("oha", build), *words],
        stated=lambda text: sum(json.loads(text[text.index("{") :])["statusCodeDistribution"].values()),
    )


def k6(folder: Path, url: str) -> Load:
    script, summary = folder / "k6.js", folder / "k6.json"
    script.write_text(K6_SCRIPT % values(url))
    command = [go_program("k6", K6), "run", "--quiet", "--summary-export", str(summary), str(script)]
    return Load(command, str(summary), last_number(r"http_reqs\.+: (\d+)"))


def locust(folder: Path, url: str) -> Load:
    def build(target: Path) -> list[str]:
        steps = f"{sys.executable} -m venv '{target}' && '{target}/bin/pip' install --quiet {LOCUST}"
        return ["sh", "-c", steps]

    script = folder / "locustfile.py"
    script.write_text(LOCUST_FILE % values(url))
    words = ("--headless", "-u", str(CONNECTIONS), "-r", str(CONNECTIONS), "-t", f"{LOCUST_DURATION_S}s")
    command = [installed("locust", build), "-f", str(script), *words, "--host", url, "--csv", str(folder / "locust")]
    # A failed request makes Locust's exit status 1.
    return Load(
        [*command, "--exit-code-on-error", "0"],
        str(folder / "locust_stats_history.csv"),
        last_number(r"Aggregated +(\d+) +\d+\("),
    )


def gatling(version: str, printed_total: str) -> Callable[[Path, str], Load]:
    def load(folder: Path, url: str) -> Load:
        modules = ("gatling:gatling-app", "gatling:gatling-http-java", "gatling.highcharts:gatling-charts-highcharts")
        jars = fetch_jars(
            cache_folder(os.environ) / f"gatling-{version}",
            [f"io.{module}:{version}" for module in modules],
            no_progress,
            f"Gatling {version}",
        )
        classes, results = folder / f"gatling-{version}", folder / f"gatling-{version}-results"
        classes.mkdir()
        (classes / "Reads.java").write_text(SIMULATION % values(url))
        (classes / "logback.xml").write_text(LOGBACK)
        java = str(find_java(os.environ))
        compiler = str(Path(java).resolve().with_name("javac"))
        subprocess.run([compiler, "-cp", f"{jars}/*", "-d", classes, classes / "Reads.java"], check=True)
        options = ("-Xmx512m", "--add-opens=java.base/java.lang=ALL-UNNAMED", "-cp", f"{classes}:{jars}/*")
        words = ("io.gatling.app.Gatling", "-s", "Reads", "-rf", str(results), "-nr")
        return Load([java, *options, *words], f"{results}/*/simulation.log", last_number(printed_total))

    return load


LOADS: dict[str, Callable[[Path, str], Load]] = {
    "ab": ab,
    "hey": hey,
    "oha": oha,
    "k6": k6,
    "locust": locust,
    "gatling-text": gatling(GATLING_TEXT, r"> Global +\(OK=(\d+) +KO=(\d+) *\)"),
    "gatling-binary": gatling(GATLING_BINARY, r"> Global +\| +([\d,]+) \|"),
}


def load_rows() -> None:
    """Create the table that the HTTP server reads, and its rows."""
    replication = f"{{'class': 'SimpleStrategy', 'replication_factor': {PLAN.nodes}}}"
    with Cluster([PLAN.address]) as session_cluster, session_cluster.connect() as session:
        session.execute(f"CREATE KEYSPACE IF NOT EXISTS latte WITH replication = {replication}", timeout=60)
        session.execute("CREATE TABLE IF NOT EXISTS latte.numbers (id bigint PRIMARY KEY)", timeout=60)
        insert = session.prepare("INSERT INTO latte.numbers (id) VALUES (?)")
        insert.consistency_level = ConsistencyLevel.ALL
        execute_concurrent_with_args(session, insert, [(number,) for number in range(ROWS)])


def reads(nodes: Sequence[Node]) -> int:
    """Return the number of client reads that the nodes have counted."""
    return sum(ask(node, {"type": "read", "mbean": READS, "attribute": "Count"}) for node in nodes)


def defects(name: str, folder: Path, url: str, nodes: Sequence[Node]) -> Iterator[str]:
    """Record a generator, and yield what is wrong."""
    load = LOADS[name](folder, url)
    before = reads(nodes)
    recorded(folder / name, load.command, *(("--client", load.client) if load.client else ()))
    counted = reads(nodes) - before
    (result,) = results_in(folder / name)
    totals = [summary for operation in result.operations if (summary := operation.summary)]
    completed, failed = (sum(getattr(total, key) for total in totals) for key in ("completed", "failed"))
    stated = load.stated((folder / name / "command.log").read_text(encoding="utf-8"))
    print(
        f"  {result.format}: {completed + failed} operations imported ({failed} failed), {stated} printed; "
        f"{completed} completed, {counted} reads counted by the nodes",
        flush=True,
    )
    for note in result.notes:
        print(f"    note: {note}")
    if abs(completed + failed - stated) > TOLERANCE * stated:
        yield f"{completed + failed} operations imported, but {stated} printed"
    if abs(completed - counted) > TOLERANCE * counted:
        yield f"{completed} operations completed, but the nodes counted {counted} reads"


def main() -> int:
    """Record the runs; return the exit status."""
    with running_cluster() as (folder, nodes):
        load_rows()
        with front_end() as url:
            return status_of({name: partial(defects, name, folder, url, nodes) for name in LOADS})


if __name__ == "__main__":
    sys.exit(main())
