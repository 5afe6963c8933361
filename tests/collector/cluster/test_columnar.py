"""The engine says what the plain way says, whatever was recorded."""

import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from math import isclose
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from collector.catalogue import CATALOGUE
from collector.cluster.columnar.reduce import reduced
from collector.cluster.grid import Grid, NodeInterval
from collector.cluster.merge import merge
from collector.cluster.merge_job import Job, NodeRun
from collector.cluster.recordings import recordings, sessions
from collector.cluster.reference_merge import node_run, reference_merge
from collector.journal import writer
from collector.journal.header import Header
from collector.journal.tick_order import Integrity
from collector.journal.writer import Journal, Limits
from collector.model.histogram import Buckets
from collector.model.metric import Kind, Metric, Series, Value
from collector.model.sample import Derived, Rate
from collector.model.snapshot import Event, Scrape, Snapshot, Tick, with_rounded_times

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
    Metric("heap_bytes", Kind.GAUGE, "bytes", "", scale=0.5),
    Metric("version", Kind.TEXT, "", ""),
    # One for each way in which nodes are aggregated, as the catalogue says it.
    *(
        CATALOGUE[name]
        for name in (
            "cassandra_compaction_pending",
            "cassandra_jvm_gc_seconds_total",
            "cassandra_pool_oldest_task_seconds",
            "cassandra_endpoints_up",
            "node_disk_reads_completed_total",
            "node_memory_MemAvailable_bytes",
        )
    ),
)
NUMBERS = st.integers(0, 300) | st.integers(0, 1 << 40) | st.floats(0, 1e9)
# In nanoseconds of 4.0, in microseconds of 4.1; the layout is another only after a start.
LAYOUTS = (165, 128)
COUNTS = st.lists(st.integers(0, 60), min_size=3, max_size=5).map(tuple)
VALUES: dict[tuple[str, ...], st.SearchStrategy[Value]] = {
    ("requests_total", "Read"): NUMBERS,
    ("request_seconds_total", "Read"): NUMBERS,
    ("duration_seconds", "Read"): COUNTS,
    ("cells_per_read",): COUNTS,
    ("requests_total", "Write"): st.integers(0, 120),
    ("duration_seconds", "Write"): COUNTS,
    ("heap_bytes",): NUMBERS,
    ("cassandra_compaction_pending",): NUMBERS,
    ("cassandra_jvm_gc_seconds_total", "ParNew"): NUMBERS,
    ("cassandra_jvm_gc_seconds_total", "ZGC Pauses"): NUMBERS,
    ("cassandra_pool_oldest_task_seconds", "request", "ReadStage"): NUMBERS,
    ("cassandra_endpoints_up",): NUMBERS,
    ("version",): st.sampled_from(["4.1", "5.0"]),
    ("unknown", "x"): NUMBERS,
}
EVENTS = st.lists(st.builds(Event, st.sampled_from(["gc", "flush"]), st.sampled_from(["a", "b"])), max_size=1).map(
    tuple
)


def laid_out(snapshot: Snapshot) -> Snapshot:
    """Give the histograms the layout that their node has since its start; small ones are easier to look at."""
    scrapes = []
    for scrape in snapshot.scrapes:
        length = LAYOUTS[scrape.origin[-1:] in "02468"]
        values = {s: (v * 60)[:length] if isinstance(v, tuple) else v for s, v in scrape.values.items()}
        scrapes.append(replace(scrape, values=values))
    return replace(snapshot, scrapes=tuple(scrapes))


@st.composite
def ticks(draw: st.DrawFn) -> list[Snapshot]:
    """Ticks of a node whose counters grow, go back, come and go, and that starts anew now and then."""
    time_s, at_s = 1_795_000_000.0, 100.0
    origins = {"cassandra": 1, "disk": 1}
    found = []
    for _ in range(draw(st.integers(1, 14))):
        step_s = draw(st.sampled_from([1.0, 1.0, 1.0, 2.0, 7.0, -3.0, 0.0]))
        time_s, at_s = time_s + step_s, at_s + draw(st.sampled_from([1.0, 1.0, 1.003, 0.0, 2.5]))
        if draw(st.integers(0, 5)) == 0:
            origins["cassandra"] += 1
        series = draw(st.lists(st.sampled_from(list(VALUES)), unique=True))
        own = Scrape(
            "cassandra",
            at_s,
            {("heap_bytes",): draw(NUMBERS), **{each: draw(VALUES[each]) for each in series}} if series else {},
            f"c{origins['cassandra']}",
            draw(st.sampled_from(["", "", "no answer"])),
            draw(EVENTS),
        )
        device = draw(st.sampled_from(["vda", "vda", "vdb"]))
        machine: dict[Series, Value] = {
            ("node_disk_reads_completed_total", device): draw(st.integers(0, 1000)),
            ("node_memory_MemAvailable_bytes",): draw(NUMBERS),
        }
        disk = Scrape("disk", at_s - 0.01, machine, "boot")
        scrapes = draw(st.sampled_from([(own, disk), (own, disk), (disk, own), (disk,)]))
        tick = Tick(time_s, draw(st.floats(0, 0.5)), draw(st.integers(0, 2)), draw(st.sampled_from([0.0, 3.5])))
        found.append(with_rounded_times(Snapshot("n", tick, scrapes)))
    return found


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


def assert_same(plain: NodeInterval, fast: NodeInterval) -> None:
    one, other = plain.sample, fast.sample
    assert one.values.keys() == other.values.keys()
    for series, value in one.values.items():
        assert close(value, other.values[series]), (series, value, other.values[series])
    assert one.elapsed_s.keys() == other.elapsed_s.keys()
    assert all(isclose(one.elapsed_s[source], other.elapsed_s[source], rel_tol=1e-9) for source in one.elapsed_s)
    assert one.spread == {series: pytest.approx(ends) for series, ends in other.spread.items()}
    assert sorted(one.events, key=repr) == sorted(other.events, key=repr)
    assert (one.tick, plain.ticks) == (other.tick, fast.ticks)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "node"


def write(folder: Path, runs: Sequence[list[Snapshot]], boot: str = "") -> Path:
    """Record the runs, one after the other, in place of what is there."""
    for file in folder.glob("*.zst"):
        file.unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "FULL_EVERY", 5)
        for number, snapshots in enumerate(runs):
            head = Header("1", 1.0, str(number), boot=boot, sources=("cassandra",), disk="vda", metrics=METRICS)
            with closing(Journal(folder, partial(replace, head), Limits(sync="never"), pytest.fail)) as journal:
                for snapshot in snapshots:
                    journal.append(laid_out(snapshot))
    return folder


shared = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
    max_examples=30,
    # Making what fails smaller takes minutes.
    phases=[Phase.reuse, Phase.generate],
)


@given(st.lists(ticks(), min_size=1, max_size=3), st.sampled_from([1.0, 3.0, 5.0]), st.sampled_from([0.0, 0.4, -90.0]))
@shared
def test_the_engine_says_what_the_plain_way_says(
    folder: Path, runs: Sequence[list[Snapshot]], interval_s: float, offset_s: float
) -> None:
    found, notes = sessions([write(folder, runs)])
    assert notes == []
    ((recording,), _) = recordings(found)
    grid = Grid(interval_s)
    plain = node_run(recording, grid, offset_s)
    column = reduced(recording, grid, offset_s)
    fast = column.intervals(grid)
    assert plain.integrity == Integrity() == column.integrity
    assert plain.intervals.keys() == fast.keys()
    for place, each in plain.intervals.items():
        assert_same(each, fast[place])


@given(st.lists(ticks(), min_size=2, max_size=4), st.data())
@shared
def test_so_does_the_sum_over_nodes(folder: Path, nodes: Sequence[list[Snapshot]], data: st.DataObject) -> None:
    for old in folder.glob("*"):
        shutil.rmtree(old)
    for number, snapshots in enumerate(nodes):
        named = [replace(snapshot, node=str(number)) for snapshot in snapshots]
        write(folder / str(number), [named], data.draw(st.sampled_from(["", "a", "b"])))
    found, _ = recordings(sessions([folder])[0])
    job = Job(Grid(5.0), {"0": 0.3}, frozenset(metric.name for metric in METRICS), len_of)
    plain, fast = reference_merge(found, job), merge(found, job)
    assert [each.node for each in plain.nodes] == [each.node for each in fast.nodes]
    assert plain.nodes == fast.nodes
    assert (plain.indices, plain.cluster.keys()) == (fast.indices, fast.cluster.keys())
    for place, each in plain.cluster.items():
        assert each.answered == fast.cluster[place].answered
        assert_same(NodeInterval(each.sample, 0), NodeInterval(fast.cluster[place].sample, 0))


def len_of(run: NodeRun) -> int:
    return len(run.intervals)
