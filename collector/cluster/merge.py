"""Many recordings as one run: what every node and the cluster did in each interval of one grid."""

import importlib.util
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Generic, TypeVar

from collector.cluster import aggregation
from collector.cluster.cluster_sample import ClusterSample
from collector.cluster.grid import Bin, Grid, bins, placement
from collector.cluster.recordings import Recording
from collector.journal.frames import Damage
from collector.journal.header import Header
from collector.journal.read_limits import MAX_SERIES, SeriesLimit
from collector.journal.reader import Entry
from collector.journal.tick_order import Integrity, TickOrder
from collector.model.metric import Metric, Series
from collector.model.sample import Sample
from collector.model.snapshot import Tick

DEFAULT_S = 5.0
# What comes with casstat[analysis].
FAST = ("numpy", "orjson")
# So many nodes are handed to a process at once; for fewer it is not worth starting one.
NODES_A_TASK = 8
Product = TypeVar("Product")


@dataclass(frozen=True)
class NodeRun:
    """One node on the grid.

    bins       by interval; one that is missing tells that nothing is known of the node then.
    integrity  what is wrong with its files.
    """

    node: str
    head: Header
    bins: Mapping[int, Bin]
    integrity: Integrity = Integrity()  # noqa: RUF009 - it is frozen


@dataclass(frozen=True)
class NodeResult(Generic[Product]):
    """What is kept of a node: `product` is what the caller made of its intervals."""

    node: str
    head: Header
    ticks: int
    missed: int
    integrity: Integrity
    product: Product


@dataclass(frozen=True)
class Merged(Generic[Product]):
    """A run: every node and all of them together, on one grid. `places` are its intervals, first to last."""

    grid: Grid
    nodes: tuple[NodeResult[Product], ...]
    cluster: Mapping[int, ClusterSample]
    places: range


@dataclass(frozen=True)
class Job(Generic[Product]):
    """What to do with recordings.

    offsets  by how much a node's clock is ahead, seconds.
    wanted   what `make` needs: metrics, and single series of others.
    make     what to make of each node; it may be called in another process.
    max_series  how many series a node may have.
    """

    grid: Grid
    offsets: Mapping[str, float]
    wanted: frozenset[str | Series]
    make: Callable[[NodeRun], Product]
    max_series: int = MAX_SERIES

    def result(self, run: NodeRun) -> NodeResult[Product]:
        """Return what is kept of a node."""
        ticks = sum(each.ticks for each in run.bins.values())
        missed = sum(each.sample.tick.missed for each in run.bins.values())
        return NodeResult(run.node, run.head, ticks, missed, run.integrity, self.make(run))


def catalogue_of(recordings: Sequence[Recording]) -> dict[str, Metric]:
    """Return the metrics that the recordings know, without those that mean different things in them."""
    heads = [session.head for recording in recordings for session in recording.sessions]
    found = {name: metric for head in heads for name, metric in head.catalogue.items()}
    differing = {name for head in heads for name, each in head.catalogue.items() if each.meaning != found[name].meaning}
    return {name: metric for name, metric in found.items() if name not in differing}


def merge(
    recordings: Sequence[Recording], job: Job[Product], processes: int = 1, done: Callable[[int], None] = lambda _: None
) -> Merged[Product]:
    """Bring recordings onto one grid, with the faster engine where it is installed.

    `done` is told whenever so many more nodes are merged. Raises OSError.
    """
    if all(importlib.util.find_spec(name) for name in FAST):
        # Here and not above: what samples must not load it.
        from collector.cluster.columnar.decode import StrangeError

        try:
            return _merged_fast(recordings, job, processes, done)
        except StrangeError:
            # It takes its time, and knows what to make of everything.
            pass
    return merged_plainly(recordings, job, done)


def merged_plainly(
    recordings: Sequence[Recording], job: Job[Product], done: Callable[[int], None] = lambda _: None
) -> Merged[Product]:
    """Bring recordings onto one grid tick by tick: this says what is meant. Raises OSError."""
    runs, results = [], []
    for recording in recordings:
        run = node_run(recording, job.grid, job.offsets.get(recording.node, 0.0), job.max_series)
        runs.append(run)
        results.append(job.result(run))
        done(1)
    known = sorted({place for run in runs for place in run.bins})
    places = range(known[0], known[-1] + 1) if known else range(0)
    metrics = catalogue_of(recordings)
    spans = [summed_spans(metrics, run) for run in runs]
    found = {place: together(metrics, runs, spans, job.grid, place) for place in known}
    return Merged(job.grid, tuple(results), found, places)


def node_run(recording: Recording, grid: Grid, offset_s: float, max_series: int = MAX_SERIES) -> NodeRun:
    """Return one node on the grid; its clock is ahead by `offset_s`. Raises OSError, TooManySeriesError."""
    limit = SeriesLimit(max_series, recording.node)
    integrity = Integrity()

    def entries() -> Iterator[Entry]:
        nonlocal integrity
        for session in recording.sessions:
            sequence, damaged = TickOrder(), 0
            for each in sequence.filtered(session.read(limit)):
                if isinstance(each, Entry):
                    yield each
                else:
                    damaged += isinstance(each, Damage)
            integrity += sequence.integrity(damaged)

    found = bins(entries(), grid, offset_s)
    return NodeRun(recording.node, recording.sessions[-1].head, found, integrity)


Spans = Mapping[Series, tuple[int, int]]
"""The first and the last interval in which a node has a series."""


def summed_spans(metrics: Mapping[str, Metric], node: NodeRun) -> Spans:
    """Return the spans of a node's own gauges that add up across nodes."""
    spans: dict[Series, tuple[int, int]] = {}
    for place, found in node.bins.items():
        for series, value in found.sample.values.items():
            if isinstance(value, float) and aggregation.is_own_sum(metrics.get(series[0])):
                spans[series] = spans.get(series, (place, place))[0], place
    return spans


def together(
    metrics: Mapping[str, Metric], nodes: Sequence[NodeRun], spans: Sequence[Spans], grid: Grid, place: int
) -> ClusterSample:
    """Return what the nodes did together in an interval of which something is known; `spans` are those of each node."""
    samples: list[tuple[aggregation.Placement, Sample]] = []
    lacking: set[Series] = set()
    answered = 0
    for node, of_node in zip(nodes, spans, strict=True):
        if (found := node.bins.get(place)) is not None:
            samples.append((placement(node.head), _sample(found.sample, metrics)))
            if any(source in found.sample.elapsed_s for source in node.head.sources):
                answered += 1
                inside = {series for series, (first, last) in of_node.items() if first < place < last}
                lacking |= inside - found.sample.values.keys()
    once = aggregation.counted_once(metrics, samples)
    return ClusterSample(aggregation.merged(metrics, once, Tick(grid.end(place)), lacking), answered)


def _sample(sample: Sample, metrics: Collection[str]) -> Sample:
    return replace(sample, values={series: value for series, value in sample.values.items() if series[0] in metrics})


def _merged_fast(
    recordings: Sequence[Recording], job: Job[Product], processes: int, done: Callable[[int], None]
) -> Merged[Product]:
    # Here and not above: what samples must not load it.
    from collector.cluster.columnar.cluster_sums import ClusterSums
    from collector.cluster.columnar.worker import span, uncollected, work

    metrics = catalogue_of(recordings)
    places = span(recordings, job.grid, job.offsets)
    whole = ClusterSums(places, metrics)
    results: dict[str, NodeResult[Product]] = {}
    tasks = _tasks(recordings)
    if processes < 2 or len(tasks) < 2:
        finished = (work(task, job, metrics, places) for task in tasks)
        for nodes, sums in finished:
            whole.join(sums)
            results.update({node.node: node for node in nodes})
            done(len(nodes))
    else:
        with ProcessPoolExecutor(processes) as pool:
            for future in as_completed([pool.submit(work, task, job, metrics, places) for task in tasks]):
                nodes, sums = future.result()
                whole.join(sums)
                results.update({node.node: node for node in nodes})
                done(len(nodes))
    with uncollected():
        found = whole.together(job.grid)
    known = range(min(found), max(found) + 1) if found else range(0)
    return Merged(job.grid, tuple(results[each.node] for each in recordings), found, known)


def _tasks(recordings: Sequence[Recording]) -> list[list[Recording]]:
    """Return the recordings in groups; those of one machine are in the same."""
    ordered = sorted(recordings, key=lambda each: each.sessions[-1].head.boot)
    tasks: list[list[Recording]] = []
    for boot, group in groupby(ordered, key=lambda each: each.sessions[-1].head.boot):
        same = sorted(group, key=lambda each: each.node)
        for part in [same] if boot else [[each] for each in same]:
            if tasks and len(tasks[-1]) + len(part) <= NODES_A_TASK:
                tasks[-1] += part
            else:
                tasks.append(part)
    return tasks
