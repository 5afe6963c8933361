"""The page about latency and throughput against the number of clients, with and without a stopped node."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from cli.setup.demo.demo_node import Node
from docs.howto.howto_cluster import NODES, WORKLOAD, describe
from docs.howto.howto_page import HERE, Page

COST_PER_HOUR, CURRENCY = "1.15", "USD"
CLIENTS = 16
# A process that has ended but is not reaped yet has no command line.
STOP = """#!/bin/sh
[ "$1" = 3 ] || kill {pid} 2>/dev/null || exit 0
[ "$1" = 3 ] || while grep -q Cassandra /proc/{pid}/cmdline 2>/dev/null; do sleep 0.1; done
"""


def generate(folder: Path, nodes: Sequence[Node]) -> None:
    """Make the sweep and write the page. Stops a node."""
    shutil.copyfile(HERE / WORKLOAD, folder / WORKLOAD)
    _write_program(folder / "set-nodes", nodes[-1])
    page = Page("client_counts", "The number of clients, and the loss of a node", folder)
    page.text(
        "How do throughput and latency depend on the number of clients, what remains if a third of the nodes is"
        " stopped, and what do a million writes cost?"
    )
    describe(page, nodes)
    page.heading("Sweep")
    page.text(
        "Each client writes rows of 100 bytes without a pause. `set-nodes` is a script that stops the third node if"
        " only two are to run. `--order given` keeps the order of the parameters, so the node is stopped only once:"
    )
    load = f"latte run {WORKLOAD} {NODES[0]} -f write -p {{clients}} -d 25s --quiet -o result.json"
    page.run(
        "sweep",
        *NODES,
        *("-P", "nodes=3,2", "-P", "clients=1,2,4,8,16,32", "--order", "given"),
        *("--before", "./set-nodes {nodes}", "--warm-up", "10s", "--no-report", "-q"),
        *("--client", "result.json", "-o", "sweep", "--"),
        *load.split(),
    )
    page.heading("Throughput and latency against the number of clients")
    page.sweep_results("sweep")
    page.text(
        "All nodes share one processor here, so the remaining nodes gain the processor time of the stopped one, and"
        " each write has one replica less. If every node had its own machine, the throughput would fall instead."
    )
    page.image("sweep/plots/latency_clients.svg", "Median and p95 against the number of clients")
    page.image("sweep/plots/throughput_clients.svg", "Throughput against the number of clients")
    page.heading("Throughput against p95")
    page.image("sweep/plots/pareto.svg", "p95 and p99 against throughput")
    runs = [
        str(next((folder / "sweep" / "runs").glob(f"*-nodes={count}-clients={CLIENTS}-r1")).relative_to(folder))
        for count in (3, 2)
    ]
    page.text(f"The same over time, for {CLIENTS} clients with three and with two nodes:")
    page.run("plot", *runs, "--only", "runs", "-i", "2", "-o", "plots")
    page.image("plots/runs.svg", f"{CLIENTS} clients with three and with two nodes over time")
    page.heading("Cost per million writes")
    page.text("With the cost of the cluster per hour, the report of a run has the cost per million operations:")
    page.run("report", runs[0], "--cost-per-hour", COST_PER_HOUR, "--currency", CURRENCY)
    page.report_table(runs[0], "Cost at")
    page.write()


def _write_program(path: Path, node: Node) -> None:
    """Write the program that stops the node if the number of nodes is to be less than 3."""
    process = node.process()
    assert process is not None
    path.write_text(STOP.format(pid=process.pid))
    path.chmod(0o755)
