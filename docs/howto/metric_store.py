"""The page about the rate at which a cluster stores data points, and the space that they need."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from cli.recordings.recording_arguments import results_in
from cli.setup.demo.demo_node import Node
from docs.howto.howto_cluster import NODES, REPLICAS, WORKLOAD, describe
from docs.howto.howto_page import HERE, Page
from tests.real.stores import fetched
from tests.waiting import eventually

TABLE = "points"
_DISK_BYTES = re.compile(rf'^cassandra_table_live_disk_bytes\{{.*table="{TABLE}".*\}} (\S+)', re.MULTILINE)
_DISK_BYTES_LINE = re.compile(rf'^cassandra_table_live_disk_bytes\{{.*table="{TABLE}".*$', re.MULTILINE)
_SPACE_USED = re.compile(r"Space used \(live\): (\d+)")


def generate(folder: Path, nodes: Sequence[Node]) -> None:
    """Record the run and write the page."""
    shutil.copyfile(HERE / WORKLOAD, folder / WORKLOAD)
    page = Page("metric_store", "Data points per second into a store, and bits per point", folder)
    page.text(
        "How many data points per second does a cluster take that stores metrics, how steady is the rate, and how much"
        " disk space does a point need?"
    )
    describe(page, nodes)
    page.text(
        "The table has 1,000 series; a data point has a time and a floating-point number. Each point is one INSERT with"
        " the consistency level LOCAL_QUORUM, and 32 are under way at a time."
    )
    page.heading("Record")
    load = f"latte run {WORKLOAD} {NODES[0]} -f point -p 32 -d 140s --quiet -o result.json"
    options = ["--warm-up", "20s", "-q", "--client", "result.json", "-o", "run"]
    page.run("record", *NODES, *options, "--", *load.split())
    page.heading("Rate")
    page.text("`report.md` in the directory of the run has the average, the lowest and the highest rate:")
    page.report_table("run", "Throughput per")
    page.run("plot", "run", "--only", "overview", "-i", "5", "-o", "plots")
    page.image("plots/overview.svg", "The cluster during the run")
    page.heading("Space on disk")
    points = sum(o.summary.completed for result in results_in(folder / "run") for o in result.operations if o.summary)
    sizes_bytes = [_compacted_size_bytes(node) for node in nodes]
    bits = 8 * sum(sizes_bytes) / points / REPLICAS
    page.text(
        f"After `nodetool flush` and `nodetool compact howto {TABLE}` on each node, the agents report the size of the"
        " table without commit logs:"
    )
    command = [
        f"for node in {' '.join(NODES)}; do",
        f"    curl -s http://$node:17199/metrics | grep '^cassandra_table_live_disk_bytes.*\"{TABLE}\"'",
        "done",
    ]
    page.command_output(command, [line for node in nodes for line in _DISK_BYTES_LINE.findall(_page_of(node))])
    total_mb = sum(sizes_bytes) / 1e6
    page.text(
        f"These are {total_mb:.1f} MB for {points:,} data points with {REPLICAS} replicas each:"
        f" **{bits:.1f} bits per data point** and replica. The numbers are random and therefore hardly compressible."
    )
    page.heading("Other stores")
    page.text(
        "To find out how many data points Prometheus, VictoriaMetrics, InfluxDB or Graphite take, let"
        " [casstat simulate](../simulate.md) push the metrics of many nodes to them."
    )
    page.write()


def _page_of(node: Node) -> str:
    return fetched(f"http://{node.spec.address}:17199/metrics").decode()


def _compacted_size_bytes(node: Node) -> int:
    """Flush and compact the table; return its size once the agent reports the one that nodetool prints."""
    for words in (("flush", "howto", TABLE), ("compact", "howto", TABLE)):
        _nodetool(node, *words)
    size = _SPACE_USED.search(_nodetool(node, "tablestats", f"howto.{TABLE}"))
    assert size is not None

    def is_reported() -> bool:
        match = _DISK_BYTES.search(_page_of(node))
        return match is not None and float(match[1]) == int(size[1])

    eventually(is_reported, 200)
    return int(size[1])


def _nodetool(node: Node, *words: str) -> str:
    return subprocess.run([node.spec.nodetool, *words], check=True, capture_output=True, text=True).stdout
