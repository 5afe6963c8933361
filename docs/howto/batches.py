"""The page with a table of concurrent batches and their size."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from cli.setup.demo.demo_node import Node
from docs.howto.howto_cluster import NODES, WORKLOAD, describe, warm_up
from docs.howto.howto_page import HERE, Page


def generate(folder: Path, nodes: Sequence[Node]) -> None:
    """Make the sweep and write the page."""
    shutil.copyfile(HERE / WORKLOAD, folder / WORKLOAD)
    warm_up(folder, "batch", 60)
    page = Page("batches", "The best size of a batch", folder)
    page.text(
        "How many rows should an unlogged batch have, and how many batches should be under way at a time? All rows of a"
        " batch belong to the same partition and have 100 bytes."
    )
    describe(page, nodes)
    page.heading("Sweep")
    page.text(
        "The first 10 of 30 seconds are cut off as warm-up. `--items-per-op batch` states that an operation writes as"
        " many rows as the value of the parameter `batch`, so the results have rows per second (`items/s`):"
    )
    load = f"latte run {WORKLOAD} {NODES[0]} -f batch -p {{concurrency}} -P batch={{batch}} -d 30s --quiet"
    page.run(
        "sweep",
        *NODES,
        *("-P", "concurrency=1,4,16", "-P", "batch=1,10,50,200", "--items-per-op", "batch"),
        *("--warm-up", "10s", "--pause", "3s", "--no-report", "-q", "--client", "result.json", "-o", "sweep"),
        "--",
        *load.split(),
        *("-o", "result.json"),
    )
    page.heading("Results")
    page.sweep_results("sweep")
    page.image("sweep/plots/heatmap_concurrency_batch.svg", "Rows per second by concurrency and size of a batch")
    page.image("sweep/plots/throughput_batch.svg", "Rows per second against the size of a batch")
    page.write()
