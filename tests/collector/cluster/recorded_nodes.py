"""Recordings of nodes that do so many reads in each tick, and what both ways of merging make of them."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from math import isclose
from pathlib import Path
from typing import Any

import pytest

from collector.catalogue import CATALOGUE
from collector.cluster.grid import Grid, NodeInterval
from collector.cluster.merge import merge
from collector.cluster.merge_job import Job, Merged, NodeRun
from collector.cluster.recordings import recordings, sessions
from collector.cluster.reference_merge import reference_merge
from collector.journal import writer
from collector.journal.header import Header
from collector.journal.writer import Journal, Limits
from collector.model.histogram import Buckets, offsets, upper_bounds_of
from collector.model.metric import Values
from collector.model.sample import Derived, Rate, Sample
from collector.model.snapshot import Scrape, Snapshot, Tick, with_rounded_times

# A multiple of all intervals.
BEGIN_S = 1_795_000_000.0
READS = ("cassandra_client_requests_total", "Read")
READ_TIME = ("cassandra_client_request_seconds_total", "Read")
READ_DURATION = ("cassandra_client_request_duration_seconds", "Read")
HEAP = ("jvm_memory_used_bytes", "heap")
METRICS = tuple(CATALOGUE[name] for name in (READS[0], READ_TIME[0], READ_DURATION[0]))
PER_UNIT = {128: 1, 165: 1000}
"""By number of buckets, how many of their unit make a microsecond."""


def busy(
    node: str,
    ticks: int,
    reads: Callable[[int], Sequence[int]] = lambda _: (500,) * 10,
    *,
    begin_s: float = BEGIN_S,
    interval_s: float = 1.0,
    buckets: int = 128,
    origin: str = "",
) -> list[Snapshot]:
    """Return the ticks of a node, in each of which it did reads that took so many microseconds."""
    counts, number, total_us = [0] * buckets, 0, 0
    found = []
    for tick in range(ticks):
        for latency_us in reads(tick):
            counts[bisect_left(offsets(buckets - 1), latency_us * PER_UNIT[buckets])] += 1
            number, total_us = number + 1, total_us + latency_us
        values: Values = {READS: number, READ_TIME: total_us, READ_DURATION: tuple(counts)}
        scrape = Scrape("cassandra", 50.0 + tick * interval_s, values, origin or node)
        found.append(with_rounded_times(Snapshot(node, Tick(round(begin_s + tick * interval_s, 3)), (scrape,))))
    return found


def record(folder: Path, ticks: Iterable[Snapshot], full_every: int = 5, **head: Any) -> Path:
    """Write a session into a folder, and return the folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "FULL_EVERY", full_every)
        content = {"session": folder.name, "sources": ("cassandra",), "metrics": METRICS, "interval_s": 1.0, **head}
        with closing(Journal(folder, partial(Header, "1", **content), Limits(sync="never"), pytest.fail)) as journal:
            for snapshot in ticks:
                journal.append(snapshot)
    return folder


def kept(run: NodeRun) -> Mapping[int, NodeInterval]:
    """What the tests keep of a node."""
    return run.intervals


def both(
    *paths: Path, interval_s: float = 5.0, offsets_s: Mapping[str, float] | None = None
) -> tuple[Merged[Mapping[int, NodeInterval]], list[str]]:
    """Merge in both ways, which agree; return what they say, and the notes."""
    every, foreign = sessions(paths)
    found, notes = recordings(every)
    job = Job(Grid(interval_s), offsets_s or {}, frozenset(CATALOGUE), kept)
    plain, fast = reference_merge(found, job), merge(found, job)
    assert (plain.indices, plain.cluster.keys()) == (fast.indices, fast.cluster.keys())
    for one, other in zip(plain.nodes, fast.nodes, strict=True):
        assert (one.node, one.ticks, one.missed) == (other.node, other.ticks, other.missed)
        assert one.integrity == other.integrity
        assert one.product.keys() == other.product.keys()
        for place, each in one.product.items():
            assert_same(each.sample, other.product[place].sample)
    for place, cluster_reads in plain.cluster.items():
        assert cluster_reads.answered == fast.cluster[place].answered
        assert_same(cluster_reads.sample, fast.cluster[place].sample)
    return fast, [*foreign, *notes]


def assert_same(one: Sample, other: Sample) -> None:
    assert one.values.keys() == other.values.keys()
    for series, value in one.values.items():
        assert close(value, other.values[series]), (series, value, other.values[series])


def close(one: Derived, other: Derived) -> bool:
    if isinstance(one, Rate) and isinstance(other, Rate):
        pairs = zip((*one[:2], one.per_s), (*other[:2], other.per_s), strict=True)
        return all(isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) for a, b in pairs)
    if isinstance(one, Buckets) and isinstance(other, Buckets):
        pairs = zip(one.counts, other.counts, strict=True)
        return one.upper_bounds == other.upper_bounds and all(isclose(a, b, abs_tol=1e-6) for a, b in pairs)
    if isinstance(one, float) and isinstance(other, float):
        return isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return one == other


def reads_of(rows: Mapping[int, NodeInterval]) -> dict[int, tuple[float, float]]:
    """Return how many reads each interval tells of, and how long they cover."""
    found = {place: each.sample.values.get(READS) for place, each in rows.items()}
    return {place: (rate.increase, rate.elapsed_s) for place, rate in found.items() if isinstance(rate, Rate)}


def cluster_reads(merged: Merged[Any]) -> dict[int, tuple[float, int]]:
    """Return by number of the interval how many reads the cluster did, and how many nodes were there."""
    found = {}
    for place, each in merged.cluster.items():
        rate = each.sample.values.get(READS)
        found[place - merged.indices.start] = (rate.increase if isinstance(rate, Rate) else 0.0, each.answered)
    return found


def upper_bounds(buckets: int) -> tuple[float, ...]:
    return upper_bounds_of("seconds", buckets)
