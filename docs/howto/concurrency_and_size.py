"""The page with a table of threads, concurrency, size and ratio of reads."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from cli.setup.demo.demo_node import Node
from docs.howto.howto_cluster import NODES, WORKLOAD, describe
from docs.howto.howto_page import HERE, Page


def generate(folder: Path, nodes: Sequence[Node]) -> None:
    """Make the sweep and write the page."""
    shutil.copyfile(HERE / WORKLOAD, folder / WORKLOAD)
    page = Page("concurrency_and_size", "Threads, concurrency, size and ratio of reads", folder)
    page.text(
        "How do throughput, latency and errors depend on the number of threads and of concurrent requests per thread,"
        " on the size of the rows in bytes, and on the share of reads? `casstat sweep` makes a run for each"
        " combination and prints the table."
    )
    describe(page, nodes)
    page.heading("Sweep")
    parameters = ("threads=1,2", "concurrency=2,16", "size=100,2000", "reads=50,95")
    load = f"latte run {WORKLOAD} {NODES[0]} -f mixed -t {{threads}} -p {{concurrency}} -P size={{size}}"
    load += " -P reads={reads} -d 25s --quiet -o result.json"
    page.run(
        "sweep",
        *NODES,
        *(word for parameter in parameters for word in ("-P", parameter)),
        *("--warm-up", "10s", "--no-report", "-q", "--client", "result.json", "-o", "sweep"),
        "--",
        *load.split(),
    )
    page.heading("Results")
    page.sweep_results("sweep")
    page.text(
        "The percentiles come from histograms of the load generator. It waits for a response before it sends the next"
        " request, so its latency does not include the time that requests would have waited"
        " ([runs.md](../runs.md#client-results)). The best combination has the highest throughput; whether its latency"
        " is acceptable is another question, which the next plot answers: the line joins the combinations that no"
        " other one surpasses in both."
    )
    page.image("sweep/plots/pareto.svg", "p95 and p99 against throughput, with the Pareto front")
    page.heading("The distribution of the latency")
    few, many = (
        next((folder / "sweep" / "runs").glob(f"*-threads=1-concurrency={count}-size=100-reads=95-r1"))
        for count in (2, 16)
    )
    runs = [str(path.relative_to(folder)) for path in (few, many)]
    page.text(
        "Any runs of a sweep can be overlaid. These have 2 and 16 concurrent requests, one thread, rows of 100 bytes"
        " and 95% reads:"
    )
    page.run("plot", *runs, "--only", "runs_percentiles", "-o", "plots")
    page.image("plots/runs_percentiles.svg", "Latency by percentile for 2 and 16 concurrent requests")
    page.write()
