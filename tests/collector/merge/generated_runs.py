"""Recordings of generated nodes with a given number of reads in each tick; their headers contain the real catalogue."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from collector.model.histogram import offsets
from collector.model.metric import Series, Value
from collector.model.snapshot import Event, Scrape, Snapshot, Tick, with_rounded_times
from collector.node.catalogue import CATALOGUE
from collector.recording.header import Header
from collector.recording.writer import Journal, Limits

BEGIN_S = 1_795_000_000
REQUESTS = "cassandra_client_requests_total"
SECONDS = "cassandra_client_request_seconds_total"
CPU = {"user": 0.25, "idle": 0.25, **dict.fromkeys(("nice", "system", "irq", "softirq", "iowait", "steal"), 0.0)}
DURATION = "cassandra_client_request_duration_seconds"


@dataclass(frozen=True)
class GeneratedNode:
    """A description of a node to generate.

    reads       the number of reads in each tick after the first; None for ticks in which the node does not respond.
    micros      the duration of each read in microseconds.
    nanos       whether its histograms are in nanoseconds, as in Cassandra 4.0.
    ahead_s     the number of seconds by which its clock is ahead.
    """

    name: str
    reads: Sequence[int | None]
    micros: int = 500
    nanos: bool = False
    interval_s: float = 1.0
    boot: str = ""
    network: str = ""
    process: str = ""
    ahead_s: float = 0.0
    disk: str = "vda"
    events: Mapping[int, tuple[Event, ...]] = field(default_factory=dict)


def snapshots(node: GeneratedNode) -> list[Snapshot]:
    length, unit = (165, 1000) if node.nanos else (128, 1)
    upper_bounds = offsets(length - 1)
    bucket = next(index for index, bound in enumerate(upper_bounds) if node.micros * unit <= bound)
    total = 0
    snapshots = []
    for number, reads in enumerate((0, *node.reads)):
        at_s = 1000 + number * node.interval_s
        values: dict[Series, Value] = {}
        if reads is not None:
            total += reads
            buckets = tuple(total if index == bucket else 0 for index in range(length))
            values = {
                (REQUESTS, "Read"): total,
                (SECONDS, "Read"): total * node.micros,
                (DURATION, "Read"): buckets,
                ("cassandra_compaction_pending",): number,
                ("cassandra_release_version",): "4.0.17" if node.nanos else "5.0.8",
            }
        problem = "" if reads is not None else "Connection refused"
        cassandra = Scrape("cassandra", at_s, values, "1" if values else "", problem, node.events.get(number, ()))
        host: dict[Series, Value] = {
            ("node_disk_reads_completed_total", node.disk): 10 * number,
            ("node_network_receive_packets_total", "eth0"): 3 * number,
            **{("casstat_cpu_seconds_total", mode): number * share for mode, share in CPU.items()},
        }
        tick = Tick(BEGIN_S + number * node.interval_s + node.ahead_s)
        snapshots.append(with_rounded_times(Snapshot(node.name, tick, (Scrape("host", at_s, host, "boot"), cassandra))))
    return snapshots


def record(node: GeneratedNode, folder: Path, name: str = "") -> Path:
    """Record the node in a subdirectory of `folder`, and return the subdirectory."""
    head = Header(
        writer="1.0",
        interval_s=node.interval_s,
        session=f"{node.name} {name}",
        boot=node.boot,
        network=node.network,
        process=node.process or node.name,
        error_s=0.002,
        way="jolokia",
        sources=("cassandra",),
        disk=node.disk,
        interface="eth0",
        metrics=tuple(CATALOGUE.values()),
    )
    output = folder / (name or node.name)
    with closing(Journal(output, partial(replace, head), Limits(sync="never"), pytest.fail)) as journal:
        for snapshot in snapshots(node):
            journal.append(snapshot)
    return output


def record_three_nodes(folder: Path) -> Path:
    """Record three nodes for 30 s. The first two share a machine; the third does not respond between 10 s and 20 s."""
    record(GeneratedNode("a", [100] * 30, micros=400, boot="m"), folder)
    events = {3: (Event("gc", "GC 1 s", BEGIN_S + 2.5),)}
    record(GeneratedNode("b", [50] * 30, micros=9000, boot="m", disk="sda", events=events), folder)
    record(GeneratedNode("c", [100] * 10 + [None] * 10 + [100] * 10, micros=400, nanos=True, boot="other"), folder)
    return folder
