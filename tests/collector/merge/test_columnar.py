"""The columnar merge gives the same results as the reference merge."""

import gc
import shutil
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from collector.merge.clock_correction import IDENTITY, ClockCorrection
from collector.merge.columnar import reduce, session_rates
from collector.merge.columnar.reduce import reduced
from collector.merge.columnar.session_rates import MAX_VALUES, SessionRates
from collector.merge.grid import Grid, NodeInterval, SpanGrid
from collector.merge.merge import merge_all
from collector.merge.merge_job import Job, NodeRun
from collector.merge.recordings import recordings, sessions
from collector.model.metric import Kind, Metric, Series, Value
from collector.model.snapshot import Event, Sample, Scrape, Snapshot, Tick, with_rounded_times
from collector.node.catalogue import CATALOGUE
from collector.recording import writer
from collector.recording.header import Header, SeriesLimit
from collector.recording.reader import Integrity
from collector.recording.writer import Journal, Limits
from tests.collector.merge.recorded_nodes import assert_same_values
from tests.collector.merge.reference_merge import merge, node_run, reference_merge
from tests.examples import examples

HEAP = Metric("heap_bytes", Kind.GAUGE, "bytes", "", scale=0.5)
METRICS = (
    Metric("requests_total", Kind.COUNTER, "1", "", ("operation",)),
    Metric("request_seconds_total", Kind.COUNTER, "seconds", "", ("operation",), scale=1e-6),
    Metric(
        "duration_seconds",
        Kind.HISTOGRAM,
        "seconds",
        "",
        ("operation",),
        count="requests_total",
        total="request_seconds_total",
    ),
    Metric("cells_per_read", Kind.HISTOGRAM, "1", ""),
    Metric("sizes", Kind.HISTOGRAM, "1", ""),
    HEAP,
    Metric("version", Kind.TEXT, "", ""),
    # One metric from the catalogue for each aggregation.
    *(
        CATALOGUE[name]
        for name in (
            "cassandra_compaction_pending",
            "cassandra_jvm_gc_seconds_total",
            "cassandra_pool_oldest_task_seconds",
            "cassandra_endpoints_up",
            "node_disk_reads_completed_total",
            "casstat_cpu_seconds_total",
            "node_memory_MemAvailable_bytes",
        )
    ),
)
# The largest integers that the JVM's long has, and their negations, are as far apart as 64 bits allow.
EXTREMES = (1 << 52, (1 << 62) + 1, (1 << 63) - 3, (1 << 63) - 1, -(1 << 63))
# Histogram lengths in Cassandra 4.0 (nanoseconds) and 4.1 (microseconds). A node's layout changes only at a restart.
LAYOUTS = (165, 128)


def number(chance: Random) -> float:
    limits = chance.choice((0, 0.0, 5e-324, 0.5, 300, 1e9))
    return chance.choice((chance.randint(0, 300), chance.randrange(1 << 40), chance.uniform(0, 1e9), limits))


def extreme(chance: Random) -> int:
    return chance.choice((chance.randint(0, 120), chance.choice(EXTREMES)))


def counts(chance: Random) -> tuple[int, ...]:
    return tuple(chance.randint(0, 60) for _ in range(chance.randint(3, 5)))


def large_counts(chance: Random) -> tuple[int, ...]:
    """Floats cannot add these exactly."""
    return tuple(chance.choice((0, 3, (1 << 56) + 1)) for _ in range(chance.randint(3, 5)))


def changing_layout(chance: Random) -> tuple[int, ...]:
    first = counts(chance)
    return (first * 60)[: 165 + first[0] % 2]


VALUES: dict[tuple[str, ...], Callable[[Random], Value]] = {
    ("requests_total", "Read"): number,
    ("request_seconds_total", "Read"): number,
    ("duration_seconds", "Read"): counts,
    ("cells_per_read",): lambda chance: chance.choice((counts, large_counts))(chance),
    ("requests_total", "Write"): extreme,
    ("duration_seconds", "Write"): counts,
    ("heap_bytes",): number,
    # Without the negative one, because the sum of opposite extremes and a small number depends on their order.
    ("cassandra_compaction_pending",): lambda chance: chance.choice((number(chance), chance.choice(EXTREMES[:-1]))),
    ("cassandra_jvm_gc_seconds_total", "ParNew"): number,
    ("cassandra_jvm_gc_seconds_total", "ZGC Pauses"): number,
    ("cassandra_jvm_gc_seconds_total", "ZGC Cycles"): number,
    ("cassandra_pool_oldest_task_seconds", "request", "ReadStage"): number,
    ("cassandra_endpoints_up",): number,
    ("version",): lambda chance: chance.choice(("4.1", "5.0", 5, 5.5)),
    ("sizes",): changing_layout,
    ("unknown", "x"): number,
}


def with_full_layouts(snapshot: Snapshot) -> Snapshot:
    """Extend the short generated histograms to the full length of their layout by repeating their counts."""
    scrapes = []
    for scrape in snapshot.scrapes:
        length = LAYOUTS[scrape.origin[-1:] in "02468"]
        values = {
            s: (v * 60)[:length] if isinstance(v, tuple) and len(v) < 128 else v for s, v in scrape.values.items()
        }
        scrapes.append(replace(scrape, values=values))
    return replace(snapshot, scrapes=tuple(scrapes))


def ticks(chance: Random) -> list[Snapshot]:
    """Return the ticks of a node whose counters grow, decrease, appear and disappear, with occasional restarts."""
    time_s, at_s = 1_795_000_000.0, 100.0
    origins = {"cassandra": 1, "disk": 1}
    snapshots = []
    for _ in range(chance.randint(1, 14)):
        step_s = chance.choice((1.0, 1.0, 1.0, 2.0, 7.0, -3.0, 0.0))
        time_s, at_s = time_s + step_s, at_s + chance.choice((1.0, 1.0, 1.003, 0.0, 2.5))
        if chance.randint(0, 5) == 0:
            origins["cassandra"] += 1
        series = chance.sample(list(VALUES), chance.randint(0, len(VALUES)))
        kind, text = chance.choice(("gc", "flush")), chance.choice(("a", "b"))
        events = chance.choice(((), (Event(kind, text, chance.choice((None, 1_795_000_004.5))),)))
        cassandra = Scrape(
            "cassandra",
            at_s,
            {("heap_bytes",): number(chance), **{name: VALUES[name](chance) for name in series}} if series else {},
            f"c{origins['cassandra']}",
            chance.choice(("", "", "no answer")),
            events,
        )
        device = chance.choice(("vda", "vda", "vdb"))
        machine: dict[Series, Value] = {
            ("node_disk_reads_completed_total", device): chance.randint(0, 1000),
            ("node_memory_MemAvailable_bytes",): number(chance),
            ("casstat_cpu_seconds_total", "iowait"): number(chance),
            ("casstat_cpu_seconds_total", "user"): chance.randint(0, 120),
        }
        disk = Scrape("disk", at_s - 0.01, machine, "boot")
        scrapes = chance.choice(((cassandra, disk), (cassandra, disk), (disk, cassandra), (disk,)))
        tick = Tick(
            time_s, chance.choice((0.0, chance.uniform(0, 0.5))), chance.randint(0, 2), chance.choice((0.0, 3.5))
        )
        snapshots.append(with_rounded_times(Snapshot("n", tick, scrapes)))
    return snapshots


# Hypothesis takes longer to draw each value than a merge takes, and the tests do not shrink examples.
NODES = st.builds(Random, st.integers(0, 1 << 32)).map(ticks)


def assert_same(reference: NodeInterval, columnar: NodeInterval) -> None:
    expected, actual = reference.sample, columnar.sample
    assert_same_values(expected, actual)
    assert actual.elapsed_s == {
        source: pytest.approx(time_s, rel=1e-9) for source, time_s in expected.elapsed_s.items()
    }
    assert expected.spread == {series: pytest.approx(extremes) for series, extremes in actual.spread.items()}
    assert sorted(expected.events, key=repr) == sorted(actual.events, key=repr)
    assert (expected.tick, reference.ticks) == (actual.tick, columnar.ticks)
    assert reference.unknown_s == columnar.unknown_s


def limited(sample: Sample, names: Collection[str]) -> Sample:
    """Return the sample with only the series of some metrics."""
    values = {series: value for series, value in sample.values.items() if series[0] in names}
    spread = {series: extremes for series, extremes in sample.spread.items() if series[0] in names}
    return replace(sample, values=values, spread=spread)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "node"


def write(folder: Path, runs: Sequence[list[Snapshot]], boot: str = "", heap: Sequence[Metric] = ()) -> Path:
    """Empty the directory, and record the runs in it one after another; `heap` is the metric of the heap in each."""
    for file in folder.glob("*.zst"):
        file.unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "FULL_EVERY", 5)
        for number, snapshots in enumerate(runs):
            metrics = tuple(heap[number] if heap and metric is HEAP else metric for metric in METRICS)
            head = Header("1", 1.0, str(number), boot=boot, sources=("cassandra",), disk="vda", metrics=metrics)
            with closing(Journal(folder, partial(replace, head), Limits(sync="never"), pytest.fail)) as journal:
                for snapshot in snapshots:
                    journal.append(with_full_layouts(snapshot))
    return folder


shared = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
    max_examples=examples(30),
    # Do not shrink failing examples, because that takes minutes.
    phases=[Phase.reuse, Phase.generate],
)


# The last clock drifts so fast that its correction shifts ticks to other intervals within a short recording.
CLOCKS = (
    IDENTITY,
    ClockCorrection.constant(0.4),
    ClockCorrection.constant(-90.0),
    ClockCorrection((1_795_000_000.0, 1_795_000_010.0, 1_795_000_030.0), (-1.3, 4.4, 0.6)),
)


BEGIN_S = 1_795_000_000.0
SPANS = ((BEGIN_S, BEGIN_S + 6.5), (BEGIN_S + 6.5, BEGIN_S + 12.0), (BEGIN_S + 15.0, BEGIN_S + 40.0))
GRIDS = st.sampled_from(
    [Grid(1.0), Grid(3.0), Grid(5.0, end_s=BEGIN_S + 30.0), SpanGrid(inf, spans=SPANS), SpanGrid(2.0, spans=SPANS)]
)


WANTED = st.frozensets(st.sampled_from([metric.name for metric in METRICS]))


def assert_same_intervals(folder: Path, grid: Grid) -> dict[int, NodeInterval]:
    """Assert that both implementations give the same intervals of a node, and return them."""
    ((recording,), _) = recordings(sessions([folder])[0])
    reference = node_run(recording, grid, IDENTITY)
    (columns,) = reduced(recording, [Job(grid, {}, None, interval_count)])
    columnar = columns.intervals()
    assert (reference.columns.integrity, reference.columns.outside) == (columns.integrity, columns.outside)
    assert (reference.columns.all_ticks, reference.intervals.keys()) == (columns.all_ticks, columnar.keys())
    for index, interval in reference.intervals.items():
        assert_same(interval, columnar[index])
    return columnar


@given(st.lists(NODES, min_size=2, max_size=2), GRIDS)
@shared
def test_a_metric_whose_kind_or_unit_changes_is_left_out(
    folder: Path, runs: Sequence[list[Snapshot]], grid: Grid
) -> None:
    later = [replace(tick, tick=replace(tick.tick, time_s=tick.tick.time_s + 1000)) for tick in runs[1]]
    runs = [runs[0], later]
    for other in (replace(HEAP, unit="KiB"), replace(HEAP, kind=Kind.COUNTER), replace(HEAP, kind=Kind.TEXT)):
        intervals = assert_same_intervals(write(folder, runs, heap=(HEAP, other)), grid)
        assert not any(("heap_bytes",) in interval.sample.values for interval in intervals.values())
    assert_same_intervals(write(folder, runs, heap=(HEAP, replace(HEAP, scale=2.0))), grid)


@given(NODES, st.floats(0, 1), GRIDS, st.sampled_from([20, MAX_VALUES]))
@shared
def test_ticks_of_a_partial_copy_count_once(
    folder: Path, snapshots: list[Snapshot], share: float, grid: Grid, max_values: int
) -> None:
    """The copy is read first. It may end within a frame; the original then repeats the first ticks of that frame."""
    (file,) = write(folder, [snapshots]).glob("*.zst")
    content = file.read_bytes()
    (folder / f"0{file.name}").write_bytes(content[: round(share * len(content))])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_rates, "MAX_VALUES", max_values)
        assert_same_intervals(folder, grid)


def test_lines_that_are_decoded_one_by_one_become_small_blocks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_rates, "MAX_VALUES", 20)
    # The first number is beyond 64 bits.
    values: dict[Series, Value] = {("requests_total", "Read"): 1 << 64, **{("sizes", str(n)): n for n in range(8)}}
    (session,), _ = sessions([write(folder, [[Snapshot("n", Tick(n), (Scrape("a", n, values),)) for n in range(12)]])])
    blocks = [block for block, _ in SessionRates(session, SeriesLimit(20, "n")).blocks()]
    assert [len(block.ticks) for block in blocks] == [2, 2, 1] * 2 + [2]


def test_the_sums_of_a_job_are_discarded_when_its_columns_are_made(folder: Path) -> None:
    ((recording,), _) = recordings(sessions([write(folder, [[Snapshot("n", Tick(1.0), ())]])])[0])
    sums = [
        sum(type(item) is reduce._Reduction for item in gc.get_objects())
        for _ in reduced(recording, [Job(Grid(1.0), {}, None, interval_count)] * 3)
    ]
    assert sums == [2, 1, 0]


@given(st.lists(NODES, min_size=1, max_size=3), GRIDS, st.sampled_from(CLOCKS), st.none() | WANTED)
@shared
def test_both_implementations_give_the_same_node_intervals(
    folder: Path,
    runs: Sequence[list[Snapshot]],
    grid: Grid,
    clock: ClockCorrection,
    wanted: frozenset[str] | None,
) -> None:
    all_sessions, notes = sessions([write(folder, runs)])
    assert notes == []
    ((recording,), _) = recordings(all_sessions)
    reference = node_run(recording, grid, clock)
    (columns,) = reduced(recording, [Job(grid, {recording.node: clock}, wanted, interval_count)])
    columnar = columns.intervals(wanted)
    assert reference.columns.integrity == Integrity() == columns.integrity
    assert reference.columns.outside == columns.outside
    assert reference.columns.all_ticks == columns.all_ticks
    assert reference.intervals.keys() == columnar.keys()
    for index, interval in reference.intervals.items():
        compared = [interval, columnar[index]]
        if wanted is not None:
            # All texts are kept.
            compared = [replace(one, sample=limited(one.sample, wanted)) for one in compared]
        assert_same(*compared)


@given(st.lists(NODES, min_size=2, max_size=4), st.data())
@shared
def test_both_implementations_give_the_same_cluster_intervals(
    folder: Path, nodes: Sequence[list[Snapshot]], data: st.DataObject
) -> None:
    for old in folder.glob("*"):
        shutil.rmtree(old)
    for number, snapshots in enumerate(nodes):
        named = [replace(snapshot, node=str(number)) for snapshot in snapshots]
        write(folder / str(number), [named], data.draw(st.sampled_from(["", "a", "b"])))
    runs, _ = recordings(sessions([folder])[0])
    clocks = {"0": data.draw(st.sampled_from(CLOCKS))}
    wanted = data.draw(WANTED)
    job = Job(data.draw(GRIDS), clocks, wanted, interval_count)
    reference, columnar = reference_merge(runs, job), merge(runs, job)
    assert reference.nodes == columnar.nodes
    assert (reference.indices, reference.cluster.keys()) == (columnar.indices, columnar.cluster.keys())
    for index, interval in reference.cluster.items():
        assert replace(interval, sample=columnar.cluster[index].sample) == columnar.cluster[index]
        expected, actual = (limited(sample, wanted) for sample in (interval.sample, columnar.cluster[index].sample))
        assert_same(NodeInterval(expected, 0), NodeInterval(actual, 0))


@given(st.lists(NODES, min_size=1, max_size=3), st.data())
@shared
def test_jobs_that_share_a_pass_have_the_same_results_as_alone(
    folder: Path, nodes: Sequence[list[Snapshot]], data: st.DataObject
) -> None:
    for old in folder.glob("*"):
        shutil.rmtree(old)
    for number, snapshots in enumerate(nodes):
        named = [replace(snapshot, node=str(number)) for snapshot in snapshots]
        write(folder / str(number), [named], data.draw(st.sampled_from(["", "a"])))
    runs, _ = recordings(sessions([folder])[0])
    clocks = {"0": data.draw(st.sampled_from(CLOCKS))}
    wanted = WANTED | st.just(frozenset([("requests_total", "Read"), "node_disk_reads_completed_total"])) | st.none()
    views = st.builds(Job, GRIDS, st.just(clocks), wanted, st.just(everything), has_cluster=st.booleans())
    jobs = data.draw(st.lists(views, min_size=2, max_size=4))
    assert merge_all(runs, jobs) == [merge(runs, job) for job in jobs]


def everything(run: NodeRun) -> tuple[object, ...]:
    columns = run.columns
    others = columns.outside, columns.all_ticks, columns.integrity, columns.unknown_s, columns.elapsed.keys()
    return dict(run.intervals), *others


def interval_count(run: NodeRun) -> int:
    return len(run.intervals)
