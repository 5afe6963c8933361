"""The cluster of the pages: three nodes on one processor, and the load generator on the other."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from acceptance.client_hosts import PLAN, cluster, latte
from acceptance.saturation import GENERATOR_CPU, pin, wait_until_idle
from cli.setup.demo.demo_node import Node
from docs.howto.howto_page import HERE, Page, add_to_path

HOWTO_PLAN = replace(PLAN, address="127.0.0.1")
NODES = HOWTO_PLAN.addresses()
WORKLOAD = "workload.rn"
# The replication factor of the workload's keyspace.
REPLICAS = 3
_WARM_UP_S = 90


@contextmanager
def howto_cluster(folder: Path) -> Iterator[list[Node]]:
    """Run the nodes with their agents, loaded with data, and with code that is compiled.

    Commands that start in the block run on the load generator's processor.
    """
    shutil.copyfile(HERE / WORKLOAD, folder / WORKLOAD)
    add_to_path(Path(latte()).parent)
    with cluster(folder, HOWTO_PLAN) as nodes:
        for words in (("schema", WORKLOAD, NODES[0]), ("load", WORKLOAD, NODES[0])):
            subprocess.run([latte(), *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        warm_up(folder, "mixed", _WARM_UP_S)
        pin(nodes)
        affinity = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {int(GENERATOR_CPU)})
        try:
            wait_until_idle(nodes)
            yield nodes
        finally:
            os.sched_setaffinity(0, affinity)


def warm_up(folder: Path, function: str, duration_s: int) -> None:
    """Let the nodes compile the code that a function of the workload needs."""
    words = [latte(), "run", WORKLOAD, NODES[0], "-f", function, "-p", "16", "-d", f"{duration_s}s", "--quiet"]
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def describe(page: Page, nodes: Sequence[Node]) -> None:
    """Add what the figures of the page were measured on."""
    page.text(
        f"The figures come from {len(nodes)} Cassandra {HOWTO_PLAN.version} nodes, each with a heap of"
        f" {HOWTO_PLAN.heap}, which share one processor; the load generator has another one. All of them are on one"
        " small machine, so the commands and the shape of the results matter here, not the rates. An agent"
        " ([agent.md](../agent.md)) runs on each node. The load generator is"
        f" [latte](https://github.com/pkolaczk/latte) with [{WORKLOAD}]({WORKLOAD})."
    )
