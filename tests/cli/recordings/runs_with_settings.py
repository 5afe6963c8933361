"""Runs whose recordings contain the settings of their nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from collector.model.snapshot import Snapshot
from collector.node.catalogue import CATALOGUE
from collector.runs.run import Run, RunNode, RunPhase
from collector.runs.run_file import write_run
from tests.collector.merge.recorded_nodes import BEGIN_S, METRICS, busy, record

VERSION, SCHEMA = "cassandra_release_version", "cassandra_schema_version"
CLUSTER, DC, RACK = "cassandra_cluster_name", "cassandra_datacenter", "cassandra_rack"
TICKS = 60
Settings = Mapping[str, str]


def settings(number: int, **others: str) -> Settings:
    """Return the settings of a node in a rack of its own."""
    return {VERSION: "5.0.8", SCHEMA: "v1", CLUSTER: "c", DC: "dc1", RACK: f"r{number}", **others}


def with_texts(snapshot: Snapshot, texts: Settings) -> Snapshot:
    """Return the snapshot with text series."""
    (scrape,) = snapshot.scrapes
    return replace(
        snapshot, scrapes=(replace(scrape, values={**scrape.values, **{(n,): t for n, t in texts.items()}}),)
    )


def run_with_settings(
    folder: Path, nodes: Sequence[Settings], later: Settings | None = None, begin_s: float = BEGIN_S
) -> Run:
    """Write a run; each node's settings are in the first tick of its recording, and `later` is in all others."""
    metrics = (*METRICS, *(CATALOGUE[name] for name in (VERSION, SCHEMA, CLUSTER, DC, RACK)))
    run_nodes = []
    for number, texts in enumerate(nodes):
        first, *rest = busy(f"n{number}", TICKS, begin_s=begin_s)
        ticks = [with_texts(first, texts), *(with_texts(tick, later or {}) for tick in rest)]
        record(folder / "nodes" / f"n{number}", ticks, metrics=metrics, way="jolokia")
        run_nodes.append(RunNode(f"n{number}", "", f"nodes/n{number}", TICKS, interval_s=1.0))
    end_s = begin_s + TICKS
    phases = (RunPhase("main", begin_s, end_s),)
    run = Run(folder.name, begin_s, end_s, "0.1.0", nodes=tuple(run_nodes), phases=phases)
    write_run(folder, run)
    return run
