"""Node recordings with given reads in each tick, and the results of both merges."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from math import isclose
from pathlib import Path
from typing import Any

import pytest

from collector.merge.clock_correction import ClockCorrection
from collector.merge.grid import Grid, NodeInterval
from collector.merge.merge_job import Job, Merged, NodeRun
from collector.merge.recordings import recordings, sessions
from collector.model.histogram import Buckets, offsets, upper_bounds_of
from collector.model.metric import Values
from collector.model.snapshot import Derived, Rate, Sample, Scrape, Snapshot, Tick, with_rounded_times
from collector.node.catalogue import CATALOGUE
from collector.recording import writer
from collector.recording.header import Header
from collector.recording.writer import Journal, Limits
from tests.collector.merge.reference_merge import merge, reference_merge

# The default start of a recording: a multiple of ten seconds, but not of a minute.
BEGIN_S = 1_795_000_000.0
READS = ("cassandra_client_requests_total", "Read")
READ_TIME = ("cassandra_client_request_seconds_total", "Read")
READ_DURATION = ("cassandra_client_request_duration_seconds", "Read")
HEAP = ("jvm_memory_used_bytes", "heap")
METRICS = tuple(CATALOGUE[name] for name in (READS[0], READ_TIME[0], READ_DURATION[0]))
PER_UNIT = {128: 1, 165: 1000}
"""The units per microsecond in each bucket layout, by its number of buckets."""


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
    """Return a node's ticks; `reads` takes a tick's number and returns the durations of its reads in microseconds."""
    counts, number, total_us = [0] * buckets, 0, 0
    snapshots = []
    for tick in range(ticks):
        for latency_us in reads(tick):
            counts[bisect_left(offsets(buckets - 1), latency_us * PER_UNIT[buckets])] += 1
            number, total_us = number + 1, total_us + latency_us
        values: Values = {READS: number, READ_TIME: total_us, READ_DURATION: tuple(counts)}
        scrape = Scrape("cassandra", 50.0 + tick * interval_s, values, origin or node)
        snapshots.append(with_rounded_times(Snapshot(node, Tick(round(begin_s + tick * interval_s, 3)), (scrape,))))
    return snapshots


def timed(ticks: Iterable[Snapshot], offset_at: Callable[[float], float]) -> list[Snapshot]:
    """Return the ticks as timestamped by a clock that is `offset_at(t)` seconds ahead at the true time `t`."""
    return [
        with_rounded_times(replace(snapshot, tick=replace(snapshot.tick, time_s=time_s + offset_at(time_s))))
        for snapshot in ticks
        for time_s in [snapshot.tick.time_s]
    ]


def record(folder: Path, ticks: Iterable[Snapshot], full_every: int = 5, **head: Any) -> Path:
    """Record the ticks as a session in `folder`, and return `folder`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "FULL_EVERY", full_every)
        content = {"session": folder.name, "sources": ("cassandra",), "metrics": METRICS, "interval_s": 1.0, **head}
        with closing(Journal(folder, partial(Header, "1", **content), Limits(sync="never"), pytest.fail)) as journal:
            for snapshot in ticks:
                journal.append(snapshot)
    return folder


def kept(run: NodeRun) -> Mapping[int, NodeInterval]:
    """A `Job.make` that returns a node's intervals unchanged, so that tests can compare them."""
    return run.intervals


def merge_both(
    *paths: Path, interval_s: float = 5.0, clocks: Mapping[str, ClockCorrection] | None = None
) -> tuple[Merged[Mapping[int, NodeInterval]], list[str]]:
    """Merge with both implementations, assert that they agree, and return the result and the notes."""
    all_sessions, foreign = sessions(paths)
    runs, notes = recordings(all_sessions)
    heads = [session.head for recording in runs for session in recording.sessions]
    recorded = {metric.name for head in heads for metric in head.metrics}
    job = Job(Grid(interval_s), clocks or {}, frozenset(CATALOGUE) | recorded, kept)
    reference, columnar = reference_merge(runs, job), merge(runs, job)
    assert (reference.indices, reference.cluster.keys()) == (columnar.indices, columnar.cluster.keys())
    for expected, actual in zip(reference.nodes, columnar.nodes, strict=True):
        assert (expected.node, expected.ticks, expected.missed) == (actual.node, actual.ticks, actual.missed)
        assert expected.integrity == actual.integrity
        assert expected.product.keys() == actual.product.keys()
        for index, interval in expected.product.items():
            assert_same_values(interval.sample, actual.product[index].sample)
    for index, cluster_interval in reference.cluster.items():
        assert replace(cluster_interval, sample=columnar.cluster[index].sample) == columnar.cluster[index]
        assert_same_values(cluster_interval.sample, columnar.cluster[index].sample)
    return columnar, [*foreign, *notes]


def assert_same_values(expected: Sample, actual: Sample) -> None:
    """Assert that two samples have the same values, apart from rounding."""
    assert expected.values.keys() == actual.values.keys()
    for series, value in expected.values.items():
        # Most values are equal, and comparing each bucket takes long.
        other = actual.values[series]
        assert value == other or _is_close(value, other), (series, value, other)


def _is_close(expected: Derived, actual: Derived) -> bool:
    if isinstance(expected, Rate) and isinstance(actual, Rate):
        pairs = zip((*expected[:2], expected.per_s), (*actual[:2], actual.per_s), strict=True)
        return all(isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) for a, b in pairs)
    if isinstance(expected, Buckets) and isinstance(actual, Buckets):
        if not any((*expected.counts, *actual.counts)):
            # Without values, nothing depends on the bounds, and nodes may have different ones.
            return True
        pairs = zip(expected.counts, actual.counts, strict=True)
        return expected.upper_bounds == actual.upper_bounds and all(isclose(a, b, abs_tol=1e-6) for a, b in pairs)
    if isinstance(expected, float) and isinstance(actual, float):
        return isclose(expected, actual, rel_tol=1e-9, abs_tol=1e-9)
    return expected == actual


def reads_of(intervals: Mapping[int, NodeInterval]) -> dict[int, tuple[float, float]]:
    """Return the increase in reads and the seconds that it covers, by interval index."""
    rates = {index: interval.sample.values.get(READS) for index, interval in intervals.items()}
    return {index: (rate.increase, rate.elapsed_s) for index, rate in rates.items() if isinstance(rate, Rate)}


def cluster_reads(merged: Merged[Any]) -> dict[int, tuple[float, int]]:
    """Return the cluster's reads and the number of responding nodes by interval; intervals are numbered from 0."""
    reads = {}
    for index, interval in merged.cluster.items():
        rate = interval.sample.values.get(READS)
        reads[index - merged.indices.start] = (rate.increase if isinstance(rate, Rate) else 0.0, interval.answered)
    return reads


def upper_bounds(buckets: int) -> tuple[float, ...]:
    return upper_bounds_of("seconds", buckets)
