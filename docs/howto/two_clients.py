"""The page that compares two clients."""

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from cli.setup.demo.demo_node import Node
from docs.howto.howto_cluster import NODES, WORKLOAD, describe, warm_up
from docs.howto.howto_page import HERE, Page, add_to_path
from tests.real.jmeter_plan import jmeter_words

PLAN, RUNS = "reads.jmx", 3


def generate(folder: Path, nodes: Sequence[Node]) -> None:
    """Record both clients and write the page."""
    for file in (WORKLOAD, PLAN):
        shutil.copyfile(HERE / file, folder / file)
    _install_jmeter(folder)
    warm_up(folder, "read", 90)
    page = Page("two_clients", "Compare two clients", folder)
    page.text("Which of two clients gets more out of a cluster, and is the difference more than chance?")
    describe(page, nodes)
    page.text(
        "The clients are latte with the Rust driver of ScyllaDB, and JMeter with the Java driver of Apache Cassandra"
        f" ([{PLAN}]({PLAN})). Both read rows by key with the consistency level LOCAL_QUORUM and have four requests at"
        " a time under way, each without a pause."
    )
    page.heading("Record")
    page.text(
        f"Each client has {RUNS} runs of 90 seconds, in turn, so that a slow change of the cluster affects both. The"
        " first 30 seconds are not measured, because both the client and the nodes need time to reach their speed:"
    )
    for number in range(1, RUNS + 1):
        for client in ("latte", "jmeter") if number % 2 else ("jmeter", "latte"):
            _record(page, client, number, is_shown=number == 1)
    page.heading("Throughput and latency in steps of 5 seconds")
    page.run("plot", "runs/latte1", "runs/jmeter1", "-i", "5", "--only", "runs", "-o", "plots")
    page.image("plots/runs.svg", "Throughput and latency of one run of each client over time")
    page.heading("The difference")
    runs = {client: [f"runs/{client}{number}" for number in range(1, RUNS + 1)] for client in ("latte", "jmeter")}
    page.run("compare", *runs["latte"], "--with", *runs["jmeter"], output_lines=slice(None))
    page.text(
        "`casstat compare` resamples runs and intervals within runs. A difference is significant if it remains so after"
        " the correction for the number of comparisons ([runs.md](../runs.md#compare-runs)). For use in scripts,"
        " `--fail-if 'client_p99_ms > +5%'` sets the exit status."
    )
    page.write()


def _record(page: Page, client: str, number: int, *, is_shown: bool) -> None:
    name = f"{client}{number}"
    commands = {
        "latte": f"latte run {WORKLOAD} {NODES[0]} -f read -p 4 -d 90s --quiet -o {name}.json",
        "jmeter": f"jmeter -n -t {PLAN} -Jhost={NODES[0]} -l {name}.jtl",
    }
    result = {"latte": f"{name}.json", "jmeter": f"{name}.jtl"}[client]
    options = ["--name", name, "--warm-up", "30s", "-q", "--client", result, "-o", f"runs/{name}"]
    page.run("record", *NODES, *options, "--", *commands[client].split(), is_shown=is_shown)


def _install_jmeter(folder: Path) -> None:
    """Write a program `jmeter` to a folder on the path of the commands."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "jmeter"
    words = jmeter_words(folder / "jmeter-home")
    program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    program.chmod(0o755)
    add_to_path(folder / "bin")
